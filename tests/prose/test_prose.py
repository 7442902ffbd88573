"""The linter finds each construction to avoid, in every format."""

from pathlib import Path

import pytest

from tests.prose.lint import lint
from tests.prose.patterns import PATTERNS

PLANTED = "All settings stand in one file."


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.name)
def test_finds_the_example_of_each_pattern(tmp_path: Path, pattern):
    page = tmp_path / "page.md"
    page.write_text(f"# Page\n\nSome words first. {pattern.example}\n")

    assert pattern.name in {finding.rule for finding in lint([page])}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("module.py", f'"""{PLANTED}"""\n'),
        ("module.py", f'def f():\n    """Return one.\n\n    {PLANTED}\n    """\n'),
        ("module.py", "# All settings stand\n# in one file.\n"),
        ("module.py", 'raise ValueError(f"all {x} settings stand in one file")\n'),
        ("page.md", f"- A list.\n- {PLANTED}\n"),
        ("page.md", f"| {PLANTED} | cell |\n"),
        ("page.md", f"> {PLANTED}\n"),
        ("page.js", f"// {PLANTED}\n"),
        ("page.css", f"/* {PLANTED} */\n"),
        ("page.html", f"<p>{PLANTED}</p>"),
        ("values.yaml", f"# {PLANTED}\nkey: value\n"),
        ("Makefile", f"target:  ## {PLANTED}\n"),
        ("query.scm", f"; {PLANTED}\n"),
    ],
)
def test_reads_the_prose_of_each_format(tmp_path: Path, name, content):
    file = tmp_path / name
    file.write_text(content)

    assert [finding.rule for finding in lint([file])] == ["stands-in"]


@pytest.mark.parametrize(
    "content", ["```\nAll settings stand in one file.\n```\n", "Run `stands in the index` here.\n"]
)
def test_does_not_read_code(tmp_path: Path, content):
    page = tmp_path / "page.md"
    page.write_text(content)

    assert list(lint([page])) == []


def test_finds_what_proselint_finds_at_its_line(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text("A first paragraph.\n\nIt arrived after the deadline had passed for ever.\n")

    assert [finding.paragraph.line for finding in lint([page])] == [3]
