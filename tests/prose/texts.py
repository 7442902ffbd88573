"""Paragraphs of prose in the files of the project, with their line numbers."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

_CODE = re.compile(r"``.+?``|`[^`\n]+`")
_LINK = re.compile(r"\]\([^)\s]+\)|<?https?://[^\s)>]+>?")
_FENCE = re.compile(r"^ *(?:```|~~~)")
_COMMENT = {
    ".css": r"/\*(.*?)\*/",
    ".html": r"<!--(.*?)-->|>([^<>{}]+)<",
    ".js": r"/\*(.*?)\*/|(?<![:\"'])//(.*?)$",
    ".scm": r";+(.*?)$",
    ".toml": r"(?<!\S)#(.*?)$",
    ".yaml": r"(?<!\S)#(.*?)$",
    ".yml": r"(?<!\S)#(.*?)$",
    "": r"(?<!\S)#+(.*?)$",
}
_WORD_LIST = re.compile(r"[^.,;:!?()]{60,}")  # such as stop words
WORDS = 3
"""Minimum number of words in prose; shorter strings are keys or labels."""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph of prose, on one line, with inline code replaced by `x0`, `x1`, …"""

    path: Path
    line: int
    text: str


def paragraphs(path: Path) -> Iterator[Paragraph]:
    """Read the prose of a file: Markdown, Python's docstrings, comments and messages, or comments of other formats."""
    content = path.read_text("utf-8")
    found = {".md": _markdown, ".py": _python}.get(path.suffix, lambda text: _comments(text, path.suffix))(content)
    for line, text in found:
        prose = " ".join(_number_code(_LINK.sub("]", text)).split())
        if len(prose.split()) >= WORDS and not _WORD_LIST.fullmatch(prose):
            yield Paragraph(path, line, prose)


def _number_code(text: str) -> str:
    """Replace inline code by different words, so that adjacent code does not look like a repeated word."""
    numbers = count()
    return _CODE.sub(lambda _: f"`x{next(numbers)}`", text)


def _markdown(content: str) -> Iterator[tuple[int, str]]:
    block: list[str] = []
    start, in_code = 1, False
    for number, line in enumerate([*content.splitlines(), ""], start=1):
        if is_fence := bool(_FENCE.match(line)):
            in_code = not in_code
        ends = is_fence or in_code or not line.strip() or line.lstrip().startswith(("#", "|", "- ", "* ", "> "))
        if ends and block:
            yield start, " ".join(block)
            block = []
        if not is_fence and not in_code and line.strip():
            start = start if block else number
            block.append(line.strip().lstrip("#->* ").replace("|", " / "))


def _python(content: str) -> Iterator[tuple[int, str]]:
    yield from _python_comments(content)
    for line, text in _strings(ast.parse(content)):
        for block in re.finditer(r"\S(?:.|\n(?!\s*\n))*", text):
            yield line + text.count("\n", 0, block.start()), block[0]


def _python_comments(content: str) -> Iterator[tuple[int, str]]:
    """Yield comments; adjacent comment lines are one paragraph, but comments after code are separate."""
    block: list[str] = []
    start = 0
    for token in tokenize.generate_tokens(io.StringIO(content).readline):
        if token.type != tokenize.COMMENT or token.string.startswith(("# noqa", "# type:", "#!")):
            continue
        line = token.start[0]
        if block and (line != start + len(block) or not _is_alone(token)):
            yield start, " ".join(block)
            block = []
        start = start if block else line
        block.append(token.string.lstrip("#: "))
        if not _is_alone(token):
            yield line, block.pop()
    if block:
        yield start, " ".join(block)


def _is_alone(comment: tokenize.TokenInfo) -> bool:
    return comment.line.lstrip().startswith("#")


def _strings(node: ast.AST) -> Iterator[tuple[int, str]]:
    match node:
        case ast.JoinedStr(values=values):
            texts = (str(part.value) if isinstance(part, ast.Constant) else "`…`" for part in values)
            yield node.lineno, "".join(texts)
        case ast.Constant(value=str() as text) if " " in text:
            yield node.lineno, text
        case _:
            for child in ast.iter_child_nodes(node):
                yield from _strings(child)


def _comments(content: str, suffix: str) -> Iterator[tuple[int, str]]:
    for found in re.finditer(_COMMENT[suffix], content, re.DOTALL if suffix in {".css", ".html"} else re.MULTILINE):
        yield content.count("\n", 0, found.start()) + 1, next(filter(None, found.groups()), "")
