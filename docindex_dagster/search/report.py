"""The structure of a bug report or feature request: title, prose, code, and the files that it mentions.

The parts are recognized by their form alone. A template contributes headings, checkboxes, and lines such as
`Python version: 3.8`, which say nothing about the code, so they are left out.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_MAX_LENGTH = 1 << 16  # characters, the limit of an issue on GitHub
# Text that is not shown to a reader: comments of a template, images.
_HIDDEN = re.compile(r"<!--(?:(?!<!--|-->).)*-->|!\[[^\]\n]*\]\([^)\n]*\)|<img\b[^>\n]*>", re.DOTALL)
_FENCE = re.compile(r"[ \t>]*(?:`{3,}|~{3,})")
_INLINE_CODE = re.compile(r"`([^`\n]+)`")
_WORD = re.compile(r"[^\W\d][\w$]*")
# A word that is spelled like an identifier rather than like prose.
_CODE_WORD = re.compile(r"\w*(?:[a-z][A-Z]|[A-Z]{2}[a-z]|[^\W_]_[^\W_]|[A-Za-z]\d|\d[A-Za-z])\w*|_+\w+|\w+_+")
_HEADING = re.compile(r"\s*(?:#{1,6}\s.*|\*\*[^*]+\*\*:?|[A-Z][\w /()-]{1,50}:)\s*")
_CHECKBOX = re.compile(r"\s*[-*+]\s*\[[ xX]\]")
_FIELD = re.compile(r"\s*(?:[-*+]\s*)?\*{0,2}[A-Z][\w /().-]{1,40}\*{0,2}\s*[:=]")
_VERSION = re.compile(r"\d\.\d")
_MAX_FIELD = 60  # characters of a line that gives a version
_PROMPT = re.compile(r"\s*(?:>>>|\.\.\.|In \[|Out\[|\$ )")
_STATEMENT = re.compile(
    r".*[;{}]\s*$|\s*(?:def|class|import|from|return|if|for|while|with|fn|let|func|var|const|public|private|#include|@)"
    r"\b.*[:({;]|\s*[\w.]+\(.*\)\s*$|\s*[\w.\[\]]+\s*=\s*\S"
)
_TRACEBACK = "Traceback (most recent call last)"
_EXCEPTION = re.compile(r"[\w.]+:")
# Frames of Python, IPython, Java and Kotlin, JavaScript; compilers, Go and Rust use `path:line`.
_FRAME = re.compile(
    r"""File "(?P<python>[^"\n]+)", line (?P<python_line>\d+)"""
    r"|File (?P<ipython>[~/][^\s:]+):(?P<ipython_line>\d+), in "
    r"|\bat [\w.$<>]+\((?P<java>[\w$]+\.(?:java|kt|scala)):(?P<java_line>\d+)\)"
    r"|(?<![\w/.])(?P<path>(?:[A-Za-z]:)?[\w./\\~@+-]+\.[a-z]\w{0,4}):(?P<line>\d+)"
)
_PATH = re.compile(r"(?<![\w/.])(?:[\w.@+-]+/)+[\w.@+-]+|(?<![\w/.])[\w-]+\.[a-z]\w{0,3}\b(?!\()")
_QUALIFIED = re.compile(r"(?<![\w/.:])[^\W\d]\w*(?:(?:\.|::)[^\W\d]\w*)+")
_SEPARATOR = re.compile(r"\.|::")


@dataclass(frozen=True, slots=True)
class Frame:
    """A location in a traceback or in the output of a compiler; `line` counts from 1."""

    path: str
    line: int


@dataclass(frozen=True, slots=True)
class Report:
    """The parts of a report.

    Attributes:
        title: The first line.
        prose: The other lines, without code, output, headings, versions and checkboxes.
        identifiers: Words in the title and the prose that are spelled or quoted as code.
        frames: Locations in tracebacks and compiler output, innermost first.
        paths: Paths and file names outside of frames.
        names: The parts of dotted names, such as `django.db.models`.
    """

    title: str
    prose: str
    identifiers: tuple[str, ...]
    frames: tuple[Frame, ...]
    paths: tuple[str, ...]
    names: tuple[tuple[str, ...], ...]


def is_report(text: str) -> bool:
    """Return whether a query has the form of a report: a title, and at least one line below it."""
    first, _, rest = text.strip().partition("\n")
    return bool(first.strip() and rest.strip())


def parse_report(text: str) -> Report:
    """Return the parts of a report."""
    shown = _HIDDEN.sub(" ", text[:_MAX_LENGTH]).strip()
    title, _, body = shown.partition("\n")
    prose = "\n".join(_prose(body.split("\n")))
    written = f"{title}\n{prose}"
    quoted = [word for code in _INLINE_CODE.findall(written) for word in _WORD.findall(code)]
    spelled = [word for word in _WORD.findall(written) if _CODE_WORD.fullmatch(word)]
    return Report(
        title=title.strip(),
        prose=prose,
        identifiers=tuple(dict.fromkeys((*quoted, *spelled))),
        frames=tuple(_frames(shown)),
        paths=tuple(dict.fromkeys(_PATH.findall(_FRAME.sub(" ", shown)))),
        names=tuple(dict.fromkeys(tuple(_SEPARATOR.split(name)) for name in _QUALIFIED.findall(shown))),
    )


def _prose(lines: list[str]) -> Iterator[str]:
    is_code = is_traceback = False
    for line in lines:
        if _FENCE.match(line):
            is_code, is_traceback = not is_code, False
        elif _TRACEBACK in line:
            is_traceback = True
        elif is_traceback:
            is_traceback = not _EXCEPTION.match(line)
        elif not is_code and not _is_boilerplate(line) and not _is_output(line):
            yield line


def _is_boilerplate(line: str) -> bool:
    is_version = len(line) < _MAX_FIELD and _FIELD.match(line) and _VERSION.search(line)
    return bool(is_version or _HEADING.fullmatch(line) or _CHECKBOX.match(line))


def _is_output(line: str) -> bool:
    return bool(_PROMPT.match(line) or _STATEMENT.match(line) or _FRAME.search(line))


def _frames(text: str) -> Iterator[Frame]:
    """Yield frames, innermost first: tracebacks of Python end with it, those of other languages begin with it."""
    found = [*_FRAME.finditer(text)]
    of_python = [frame for frame in found if frame["python"] or frame["ipython"]]
    for frame in (*reversed(of_python), *(frame for frame in found if frame not in of_python)):
        path = frame["python"] or frame["ipython"] or frame["java"] or frame["path"]
        line = frame["python_line"] or frame["ipython_line"] or frame["java_line"] or frame["line"]
        yield Frame(path.replace("\\", "/"), int(line))
