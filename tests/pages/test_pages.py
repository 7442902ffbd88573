"""Every command of the documentation prints the output that its page shows."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pages.page import Command, File, read_examples
from tests.pages.sandbox import ROOT, Sandbox, matches
from tests.reference.commands import options, root, subcommands

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
COMMANDS = [(page, example) for page in PAGES for example in read_examples(page) if isinstance(example, Command)]
WITH_COMMANDS = sorted({page for page, command in COMMANDS if command.runs})
FIRST_READ = {ROOT / "README.md", *(ROOT / "docs" / "tutorials").glob("*.md")}


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[Sandbox]:
    made = Sandbox(tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=str(page.relative_to(ROOT)), marks=() if page in FIRST_READ else pytest.mark.pages)
        for page in WITH_COMMANDS
    ],
)
def test_the_commands_of_a_page_print_what_it_shows(page, sandbox):
    for example in read_examples(page):
        if isinstance(example, File):
            sandbox.write(example)
        elif example.runs:
            output = sandbox.run(example)
            assert matches(example.output, output) or not example.output, (
                f"{page.relative_to(ROOT)}:{example.line}: {example.text}\n{output}"
            )
            assert example.output or "exit code " not in output, f"{page.relative_to(ROOT)}:{example.line}: {output}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_options_of_commands_exist(page):
    lines = [command.text for known, command in COMMANDS if known == page]
    inline = re.findall(r"`(docindex [^`\n]+)`", page.read_text("utf-8"))

    assert {line: unknown for line in (*lines, *inline) if (unknown := unknown_words(line))} == {}


def unknown_words(line: str) -> list[str]:
    """Return the unknown options of a docindex command, or the name of an unknown command."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        return []
    if "docindex" not in words or words[0] in {"helm", "kubectl"}:  # there it is a release or a namespace
        return []
    words = words[words.index("docindex") + 1 :]
    words = words[: next((number for number, word in enumerate(words) if word in {"|", "&&", ";", ">", "&"}), None)]
    command = root()
    known = {*options(command), "--debug"}
    while words and (commands := dict(subcommands(command))):
        name, words = words[0], words[1:]
        if name in commands:
            command = commands[name]
            known |= options(command)
        elif name == "--project":
            words = words[1:]
        elif name == "…" or name.isupper():
            return []
        elif not name.startswith("-"):
            return [name]
    return [word for word in words if word.startswith("--") and word.partition("=")[0] not in known]


def test_a_command_with_an_unknown_option_is_found():
    assert unknown_words("docindex search QUERY --no-such-option") == ["--no-such-option"]
    assert unknown_words("docindex no-such-command") == ["no-such-command"]
    assert unknown_words("docindex search QUERY --top-k 3 | head") == []


def test_output_that_differs_is_found():
    assert matches(("one", "…", "last … line"), "one\ntwo\nthree\nlast of the line\n")
    assert not matches(("one", "last"), "one\ntwo\nlast\n")
    assert not matches(("one",), "one\nexit code 1\n")
