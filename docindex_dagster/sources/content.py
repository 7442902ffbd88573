"""What only a file's bytes can say: whether it is text worth indexing, and in which encoding."""

import re
from typing import NamedTuple

from docindex_dagster.core.hashing import digest
from docindex_dagster.sources.classify import FileKind, classify, classify_name, is_converted
from docindex_dagster.sources.generated import generated_marker
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
