"""Fingerprints of what the intermediate representation says: equal in all processes for equal content."""

import zlib
from array import array
from collections.abc import Iterable
from functools import cache
from typing import Any

from docindex_dagster.callgraph.ir import Expression, TypeRef

_MOST_KNOWN = 500_000
_KNOWN: dict[Expression | TypeRef, int] = {}


def key_of(*parts: str) -> int:
    """A short hash of what can be looked up. Two that are equal by chance cost a look, not an answer."""
    return zlib.crc32("\0".join(parts).encode("utf-8", "surrogatepass"))


def joined(hashes: Iterable[int]) -> int:
    """One hash of several, in their order."""
    return zlib.crc32(array("I", hashes).tobytes())


def fingerprint(node: Expression | TypeRef) -> int:
    """A short hash of an expression or type; each is hashed once, since equal ones are one object."""
    known = _KNOWN.get(node)
    if known is None:
        if len(_KNOWN) > _MOST_KNOWN:
            _KNOWN.clear()
        fields = _fields(type(node))
        known = key_of(type(node).__name__, *(text_of(getattr(node, name)) for name in fields))
        _KNOWN[node] = known
    return known


_PLAIN = frozenset({bool, int, type(None)})


def text_of(part: Any) -> str:
    """A part of a statement as a text to be hashed: a text, a number, an expression, or a tuple of such."""
    kind = type(part)
    if kind is str:
        return part  # type: ignore[no-any-return]
    if kind in _PLAIN:
        return repr(part)
    if isinstance(part, tuple):
        return f"({','.join(map(text_of, part))})" if part else "()"
    return str(fingerprint(part))


@cache
def _fields(kind: type) -> tuple[str, ...]:
    fields: tuple[str, ...] = kind.__match_args__  # type: ignore[attr-defined]  # of a data class
    return fields
