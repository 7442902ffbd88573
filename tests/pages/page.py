"""Reader of the examples of a page: files to write, and commands with their output.

Commands are in blocks of the language `console`. A line that starts with `$ ` is a command, which continues on lines
that start with `> ` or follow a backslash. The other lines are its output: `…` matches any text in a line, and a line
with only `…` matches any lines. A comment above a block, which readers do not see, gives an instruction:

    <!-- write FILE -->        write the block to a file
    <!-- append FILE -->       append the block to a file
    <!-- not run: REASON -->   check the options of its commands without running them
    <!-- in FOLDER -->         run the commands of this block and the following ones in a folder
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(
    r"(?:^[ ]*<!-- (?P<verb>write|append|not run:|in) (?P<argument>.*?) -->\s*\n+)?"
    r"^(?P<indent>[ ]*)```(?P<language>[\w-]*)[^\n]*\n(?P<body>.*?)^(?P=indent)```[ ]*$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class File:
    """A file to write or extend."""

    line: int
    name: str
    content: str
    appends: bool


@dataclass(frozen=True, slots=True)
class Command:
    """A shell command and the output that the page shows.

    Attributes:
        runs: false if the page marks the command as `not run`.
        folder: working directory, relative to the home; empty to stay in that of the previous command.
    """

    line: int
    text: str
    output: tuple[str, ...]
    runs: bool
    folder: str


def read_examples(page: Path) -> Iterator[File | Command]:
    """Yield the examples of a page in order."""
    content = page.read_text("utf-8")
    for block in _BLOCK.finditer(content):
        line = content.count("\n", 0, block.start("body")) + 1
        indent = len(block["indent"])
        lines = [text[indent:] for text in block["body"].splitlines()]
        if block["verb"] in {"write", "append"}:
            yield File(line, block["argument"], "\n".join(lines) + "\n", block["verb"] == "append")
        elif block["language"] == "console":
            folder = block["argument"] if block["verb"] == "in" else ""
            yield from _commands(lines, line, runs=block["verb"] != "not run:", folder=folder)


def _commands(lines: list[str], first: int, *, runs: bool, folder: str) -> Iterator[Command]:
    starts = [number for number, line in enumerate(lines) if line.startswith("$ ")]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        text, output = lines[start][2:], lines[start + 1 : end]
        while text.endswith("\\") or (output and output[0].startswith("> ")):
            text, output = f"{text}\n{output[0].removeprefix('> ')}", output[1:]
        yield Command(first + start, text, tuple(output), runs, folder)
