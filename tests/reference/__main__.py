"""Write docs/reference: `python -m tests.reference`."""

from tests.reference.pages import FOLDER, PAGES

for name, page in PAGES.items():
    (FOLDER / name).write_text(page(), encoding="utf-8")
