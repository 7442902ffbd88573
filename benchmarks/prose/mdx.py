"""The words of MDX, extracted with masks and regular expressions instead of a parser."""

import re
from collections.abc import Iterable, Iterator

from benchmarks.prose.lines import Line

_FENCE = re.compile(r"[\s>*+-]*(?:\d+[.)]\s+)?(?P<fence>`{3,}|~{3,})(?P<info>[^`]*)$")
_ESM = re.compile(r"(?:import|export)\b")
_CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)(?:(?!\n\s*\n).)+?(?<!`)\1(?!`)", re.DOTALL)
_BRACES = r"\{(?:[^{}]|\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\})*\}"
_TAG = re.compile(
    rf"""</?[A-Za-z][\w.:-]*(?:\s+(?:[\w:@-]+(?:\s*=\s*(?:"[^"]*"|'[^']*'|{_BRACES}|[^\s"'<>]+))?|{_BRACES}))*\s*/?>"""
)
_FRAGMENT = re.compile(r"</?>")
_COMMENT = re.compile(r"\{\s*/\*.*?\*/\s*\}|<!--.*?-->", re.DOTALL)
_MEMBER = re.compile(r"\{\s*[A-Za-z_$][\w$]*(?:\.[\w$]+)+\s*\}|\{#[\w-]+\}[ \t]*$", re.MULTILINE)  # a value, an anchor
_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)


def read_mdx(text: str) -> Iterable[Line]:
    """Return code unchanged, and other text without statements, tags, comments and value expressions."""
    masked = _masked_fences(text)
    gone = [False] * len(text)
    for pattern in (_COMMENT, _TAG, _FRAGMENT, _MEMBER):
        for match in pattern.finditer(masked):
            gone[match.start() : match.end()] = [True] * (match.end() - match.start())
    for start, end in _statements(masked):
        gone[start:end] = [True] * (end - start)
    left = "".join(
        " " if is_gone and character != "\n" else character for character, is_gone in zip(text, gone, strict=True)
    )
    return enumerate(left.split("\n"), start=1)


def _masked_fences(text: str) -> str:
    """Return the text with its code replaced by blanks of the same length."""
    lines, closing = [], ""
    for line in text.split("\n"):
        fence = _FENCE.fullmatch(line)
        is_code = bool(closing or fence)
        if closing and fence and fence["fence"].startswith(closing) and not fence["info"].strip():
            closing = ""
        elif fence and not closing:
            closing = fence["fence"]
        lines.append("\x00" * len(line) if is_code else line)
    masked = _FRONT_MATTER.sub(_blank, "\n".join(lines))
    return _CODE_SPAN.sub(_blank, masked)


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", "\x00", match[0])


def _statements(masked: str) -> Iterator[tuple[int, int]]:
    """Yield imports and exports, which end at a blank line after all their braces are closed."""
    offset, start, depth = 0, None, 0
    for line in [*masked.split("\n"), ""]:
        if (
            start is None
            and _ESM.match(line)
            and re.match(r"import\s*[\w{*\"'$]|export\s+(?:const|default|function|let|\{|\*)", line)
        ):
            start, depth = offset, 0
        if start is not None:
            depth += line.count("{") - line.count("}")
            if not line.strip() and depth <= 0:
                yield start, offset
                start = None
        offset += len(line) + 1
