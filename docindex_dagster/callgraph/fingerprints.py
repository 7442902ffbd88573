"""Fingerprints of what the intermediate representation says: equal in all processes for equal content."""

import zlib
from functools import cache
from weakref import WeakKeyDictionary

from docindex_dagster.callgraph.ir import Expression, TypeRef

_KNOWN: WeakKeyDictionary[Expression | TypeRef, int] = WeakKeyDictionary()


def key_of(*parts: str) -> int:
    """A short hash of what can be looked up. Two that are equal by chance cost a look, not an answer."""
    return zlib.crc32("\0".join(parts).encode("utf-8", "surrogatepass"))


def fingerprint(node: Expression | TypeRef) -> int:
    """A short hash of an expression or type; each is hashed once, since equal ones are one object."""
    known = _KNOWN.get(node)
    if known is None:
        fields = _fields(type(node))
        known = key_of(type(node).__name__, *(text_of(getattr(node, name)) for name in fields))
        _KNOWN[node] = known
    return known


def text_of(part: object) -> str:
    """A part of a statement as a text to be hashed: a text, a number, an expression, or a tuple of such."""
    if isinstance(part, str):
        return part
    if isinstance(part, tuple):
        return f"({','.join(map(text_of, part))})"
    return str(fingerprint(part)) if isinstance(part, Expression | TypeRef) else repr(part)


@cache
def _fields(kind: type) -> tuple[str, ...]:
    fields: tuple[str, ...] = kind.__match_args__  # type: ignore[attr-defined]  # of a data class
    return fields
