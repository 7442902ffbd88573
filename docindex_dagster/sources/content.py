"""What only a file's bytes can say: whether it is text worth indexing, in which encoding, and whether it is generated.

Generators mark the files that they write in a comment line of its own. A file that merely speaks of generated code,
such as a generator or a linter, has none.
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
_BEGIN = 1024  # bytes in which a file that is no text says what it is
_LONG_LINE = 500  # characters
_SMALL = 1 << 14  # characters of a text whose long lines cost little
_COMMENTS = ("//", "/*", "*", "#", "--", "<!--")
_MAX_SHOWN = 80  # characters of a header that a reason shows
_TEMPLATES = tuple(TEMPLATES.encode().split())
_PRIVATE_KEY = re.compile(r"\s*-----BEGIN [A-Z ]*PRIVATE KEY")


class Content(NamedTuple):
    """What reading a file gave, or what is known of one that was not read.

    A named tuple because there are as many as files.
    """

    kind: FileKind | None = None
    content_hash: str | None = None  # None: the file was not read
    encoding: str | None = None
    is_lossy: bool = False
    reason: str | None = None  # why it is skipped; None: it is indexed
    masked: tuple[Secret, ...] | None = None  # the secrets in it; None: not looked for


def examine(path: bytes, data: bytes, *, skips_secrets: bool = True) -> Content:
    """Look at the bytes of the file at `path`, which is relative to the source, and for secrets if they are skipped.

    In a file that is converted to text, they are looked for when it is.
    """
    content_hash = digest(data)
    named = classify_name(path)
    if _LFS_POINTER.match(data[:_BEGIN]):
        return Content(
            named, content_hash, reason="lfs-pointer: Git LFS keeps the content; fetch it with `git lfs pull`"
        )
    if named is not None and is_converted(named):
        if CONVERTED[named.loader] not in data[:_BEGIN]:
            return Content(named, content_hash, reason=f"binary: named as {named.loader}, but does not begin as one")
        return Content(named, content_hash, masked=() if skips_secrets else None)
    if is_binary(data):
        return Content(named, content_hash, reason="binary: NUL bytes or control characters")
    kind = classify(path, data)
    decoded = decode(data)
    reason, masked = _reason(path, kind, data, decoded.text), None
    if skips_secrets and reason is None:
        reason, masked = _look_for_secrets(kind, decoded.text)
    return Content(kind, content_hash, decoded.encoding, decoded.is_lossy, reason, masked)


def _look_for_secrets(kind: FileKind, text: str) -> tuple[str | None, tuple[Secret, ...] | None]:
    """Why a file is skipped as a secret, if it is; else the secrets in it."""
    if _PRIVATE_KEY.match(text):
        return "secret: private key", None
    secrets = find_secrets(text)
    may_be_a_key = kind.source_type == "config" or kind.loader == "text"
    if may_be_a_key and is_mostly_secret(text, secrets):
        return f"secret: {secrets[0].rule}", None
    return None, secrets


def _reason(path: bytes, kind: FileKind, data: bytes, text: str) -> str | None:
    if not text or text.isspace():
        return "empty: no text"
    if kind.source_type != "doc" and not path.lower().endswith(_TEMPLATES) and (marker := generated_marker(data)):
        return f"generated: {marker[:_MAX_SHOWN]}"
    lines = text.count("\n") + (not text.endswith("\n"))
    if kind.loader == "code" and len(text) > max(_SMALL, _LONG_LINE * lines) and _is_mostly_long(text):
        return f"minified: lines of {len(text) // lines} characters on average"
    return None


def _is_mostly_long(text: str) -> bool:
    """Whether a text has more long lines than others, apart from comments. The chunker cuts those of other texts."""
    lines = [line for line in map(str.strip, text.split("\n")) if line]
    long = sum(len(line) > _LONG_LINE for line in lines)
    return long > sum(len(line) <= _LONG_LINE and not line.startswith(_COMMENTS) for line in lines)


_HEADER = 2048  # bytes in which a file may say that it is generated
_MARKS = (b"#", b"//", b"/*", b"*", b"--", b";", b"<", b"%", b'"""', b"(*", b"{-", b"!", b"..", b"REM ", b"rem ")
_BLOCKS = {b"/*": b"*/", b"<!--": b"-->", b"(*": b"*)", b"{-": b"-}", b'"""': b'"""'}
# What is left of a line begins with a mark again where a comment quotes another one.
_OWN_MARK = re.compile(rb'^(?:#+|//+!?|/\*+!?|<!--+|--+|;+|%+|"""|\(\*+|\{-|\*+(?!/)|!+|\.\.|(?i:rem) )')
_IN_BLOCK = re.compile(rb"^\*+(?!/)")
_DECORATION = b"*=~!- \t"
_TRAILING = b'#/*=~-{})>" \t'
_TEMPLATE = re.compile(r"\{\{|<%|\$\{|%s|\{\w*\}")
_INTRODUCTION = 3  # words before a colon; behind fewer it is that of "Note:"

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
    """Return the words by which a file says that it is generated; None where it does not, or is a template of such."""
    start = data[:_HEADER]
    if b"generated" not in start.lower():  # as in nearly all
        return None
    match = _FORMS.search("\n".join(_sentences(_comments(start))))
    return None if match is None or _TEMPLATE.search(match[0]) else " ".join(match[0].split())


def _comments(start: bytes) -> Iterator[str]:
    """Yield the lines of the comments that a file begins with, without comment marks and decoration."""
    closing = b""  # what ends the block comment that is open
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
    """Join a line to the one before that it goes on with; what a line introduces, such as an example, is left out."""
    pending, is_introduced = "", False
    for line in lines:
        if line and is_introduced:
            is_introduced = False
            continue
        goes_on = line[:1].islower() and pending[-1:].isalnum() and not line.startswith(("do not", "don't"))
        if goes_on:
            pending += f" {line}"
        else:
            yield pending
            pending = line
        is_introduced = is_introduced or (line.endswith(":") and len(pending.split()) >= _INTRODUCTION)
    yield pending
