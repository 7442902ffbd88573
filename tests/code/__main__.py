"""Regenerate the expected results of the fixtures: `python -m tests.code`."""

from tests.code.cells import PAGE, with_table
from tests.code.outlines import LANGUAGES, outline_of, outline_path, rendered

for file in LANGUAGES:
    outline_path(file).write_text(rendered(outline_of(file)), "utf-8")
PAGE.write_text(with_table(PAGE.read_text("utf-8")), "utf-8")
