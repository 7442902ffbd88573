"""Content checks: whether a file is text worth indexing, its encoding, and whether it is generated.

Generators mark the files that they write in a separate comment line. Files that only mention generated code, such as
generators and linters, have no such line.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from docindex_dagster.core.hashing import digest
from docindex_dagster.sources.classify import FileKind, classify, classify_name, is_converted
from docindex_dagster.sources.languages import CONVERTED, TEMPLATES
from docindex_dagster.sources.secrets import Secret, find_secrets, is_mostly_secret
from docindex_dagster.sources.text import decode, is_binary

_LFS_POINTER = re.compile(
    rb"version https?://(?:git-lfs|hawser)\.github\.com/spec/v1\n(?:ext-\d+-\S* \S+\n)*oid \w+:[0-9a-f]+\n"
)
_BEGIN = 1024  # bytes that contain the signature of a binary file
_LONG_LINE = 500  # characters
_SMALL = 1 << 14  # characters; long lines of a smaller text cost little
_COMMENTS = ("//", "/*", "*", "#", "--", "<!--")
_MAX_SHOWN = 80  # characters of a marker shown in a reason
_TEMPLATES = tuple(TEMPLATES.encode().split())
_PRIVATE_KEY = re.compile(r"\s*-----BEGIN [A-Z ]*PRIVATE KEY")


class Content(NamedTuple):
    """The result of reading a file, or what is known of a file that was not read.

    A named tuple because there is one for each file.
    """

    kind: FileKind | None = None
    content_hash: str | None = None  # None: the file was not read
    encoding: str | None = None
    is_lossy: bool = False
    reason: str | None = None  # why it is skipped; None: it is indexed
    masked: tuple[Secret, ...] | None = None  # the secrets in it; None: not scanned


def examine(path: bytes, data: bytes, *, skips_secrets: bool = True) -> Content:
    """Examine the bytes of the file at `path`, relative to the source; scan for secrets if these are skipped.

    Files that are converted to text are scanned for secrets on conversion.
    """
    content_hash = digest(data)
    named = classify_name(path)
    if _LFS_POINTER.match(data[:_BEGIN]):
        return Content(
            named, content_hash, reason="lfs-pointer: Git LFS stores the content; fetch it with `git lfs pull`"
        )
    if named is not None and is_converted(named):
        if CONVERTED[named.loader] not in data[:_BEGIN]:
            return Content(named, content_hash, reason=f"binary: named like {named.loader}, but its signature differs")
        return Content(named, content_hash, masked=() if skips_secrets else None)
    if is_binary(data):
        return Content(named, content_hash, reason="binary: NUL bytes or control characters")
    kind = classify(path, data)
    decoded = decode(data)
    reason, masked = _skip_reason(path, kind, data, decoded.text), None
    if skips_secrets and reason is None:
        reason, masked = _scan_for_secrets(kind, decoded.text)
    return Content(kind, content_hash, decoded.encoding, decoded.is_lossy, reason, masked)


def _scan_for_secrets(kind: FileKind, text: str) -> tuple[str | None, tuple[Secret, ...] | None]:
    """Return why a file is skipped as a secret, if it is, and otherwise the secrets in it."""
    if _PRIVATE_KEY.match(text):
        return "secret: private key", None
    secrets = find_secrets(text)
    may_be_a_key = kind.source_type == "config" or kind.loader == "text"
    if may_be_a_key and is_mostly_secret(text, secrets):
        return f"secret: {secrets[0].rule}", None
    return None, secrets


def _skip_reason(path: bytes, kind: FileKind, data: bytes, text: str) -> str | None:
    if not text or text.isspace():
        return "empty: no text"
    if kind.source_type != "doc" and not path.lower().endswith(_TEMPLATES) and (marker := generated_marker(data)):
        return f"generated: {marker[:_MAX_SHOWN]}"
    lines = text.count("\n") + (not text.endswith("\n"))
    if kind.loader == "code" and len(text) > max(_SMALL, _LONG_LINE * lines) and _is_mostly_long(text):
        return f"minified: lines of {len(text) // lines} characters on average"
    return None


def _is_mostly_long(text: str) -> bool:
    """Return whether long lines outnumber the others, apart from comments; the chunker splits other long lines."""
    lines = [line for line in map(str.strip, text.split("\n")) if line]
    long = sum(len(line) > _LONG_LINE for line in lines)
    return long > sum(len(line) <= _LONG_LINE and not line.startswith(_COMMENTS) for line in lines)


_HEADER = 2048  # bytes in which a file may declare that it is generated
_MARKS = (b"#", b"//", b"/*", b"*", b"--", b";", b"<", b"%", b'"""', b"(*", b"{-", b"!", b"..", b"REM ", b"rem ")
_BLOCKS = {b"/*": b"*/", b"<!--": b"-->", b"(*": b"*)", b"{-": b"-}", b'"""': b'"""'}
# The rest of a line starts with another mark if a comment quotes a comment.
_OWN_MARK = re.compile(rb'^(?:#+|//+!?|/\*+!?|<!--+|--+|;+|%+|"""|\(\*+|\{-|\*+(?!/)|!+|\.\.|(?i:rem) )')
_IN_BLOCK = re.compile(rb"^\*+(?!/)")
_DECORATION = b"*=~!- \t"
_TRAILING = b'#/*=~-{})>" \t'
_TEMPLATE = re.compile(r"\{\{|<%|\$\{|%s|\{\w*\}")
_INTRODUCTION = 3  # words before a colon; with fewer it is a label such as "Note:"

_LEAD = r"^(?:(?:note|warning|attention|caution|important)\W+)?"
_NOUN = (
    r"(?:(?:\w+ )?(?:file|code|class|module|script|source|header|schema|config|configuration|document|package|content))"
)
_SELF = rf"this (?:{_NOUN} )?(?:is|was|has been) (?:an? )?"
_MADE = r"(?:(?:fully )?(?:automatically|programmatically|auto|machine)[- ]?)?generated\b"
_WAY = r"(?:by|from|with|using|via|on|at|in|for|during|automatically)\b"
_CLOSED = rf"(?=\s*(?:[^\w\s]|$|{_WAY}))"  # "generated code." and "generated by", but not "generated code lives in"
_STATEMENT = rf"(?:{_SELF}{_MADE}|(?:an? )?(?:{_NOUN} )?{_MADE}(?: {_NOUN})?{_CLOSED})"
_FORBIDDEN = (
    r"(?:do not|don't|never|must not be|should not be|not be)\s+(?:manually |hand[- ]|directly )?"
    r"(?:edit|modif|chang)\w*(?!\s+(?:them|these|those|generated|any|files)\b)"
)
_FORMS = re.compile(
    rf"{_LEAD}(?:{_SELF})?(?:automatically )?@generated(?![\w-])(?=\W*(?:$|<<|(?:{_WAY}|signedsource|do not)))"
    r"|^<auto-?generated\s*/?>(?=\W*$|\s*this\b|.*</auto-?generated)"
    rf"|{_LEAD}{_STATEMENT}(?s:.{{0,200}}?)(?:[^\w\s]\s*|\n|\band )(?:please )?{_FORBIDDEN}"
    rf"|{_LEAD}(?:please )?do not (?:edit|modify|change)(?: (?:this|the) {_NOUN})?(?: (?:manually|directly|by hand))?"
    rf"(?:\W+(?:(?:this {_NOUN}|it|which) (?:is|was|has been) (?:an? )?)?|\W+(?:an? )?){_MADE}(?! \w+s\b)"
    rf"|{_LEAD}(?:please )?do not (?:edit|modify|change) this {_MADE} {_NOUN}",
    re.IGNORECASE | re.MULTILINE,
)


def generated_marker(data: bytes) -> str | None:
    """Return the words that declare a file as generated; None if there are none, or if the file is a template."""
    start = data[:_HEADER]
    if b"generated" not in start.lower():  # true for nearly all files
        return None
    match = _FORMS.search("\n".join(_sentences(_comments(start))))
    return None if match is None or _TEMPLATE.search(match[0]) else " ".join(match[0].split())


def _comments(start: bytes) -> Iterator[str]:
    """Yield the lines of the comments at the start of a file, without comment marks and decoration."""
    closing = b""  # the end mark of the open block comment
    for line in map(bytes.strip, start.splitlines()):
        own = _IN_BLOCK if closing else _OWN_MARK
        if closing:
            closing = b"" if closing in line else closing
        elif line.startswith(_MARKS):
            opening = next(filter(line.startswith, _BLOCKS), b"")
            closing = b"" if not opening or _BLOCKS[opening] in line[len(opening) :] else _BLOCKS[opening]
        elif line:
            return
        text = own.sub(b"", line).lstrip(_DECORATION)
        yield text.rstrip(_TRAILING if not text.startswith(b"<") else b" \t").decode("utf-8", "replace")


def _sentences(lines: Iterator[str]) -> Iterator[str]:
    """Join continuation lines to the line before; skip what a line introduces, such as an example."""
    pending, is_introduced = "", False
    for line in lines:
        if line and is_introduced:
            is_introduced = False
            continue
        continues = line[:1].islower() and pending[-1:].isalnum() and not line.startswith(("do not", "don't"))
        if continues:
            pending += f" {line}"
        else:
            yield pending
            pending = line
        is_introduced = is_introduced or (line.endswith(":") and len(pending.split()) >= _INTRODUCTION)
    yield pending
