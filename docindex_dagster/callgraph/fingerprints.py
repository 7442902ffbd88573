"""Fingerprints of what the intermediate representation says: equal in all processes for equal content."""

import zlib
from collections.abc import Callable
from typing import Any, get_args

import orjson

from docindex_dagster.callgraph.ir import Definition, Statement

_PLACE = ("line", "byte")
_ENDS = {row: -2 for row in (Definition, *get_args(Statement)) if row._fields[-2:] == _PLACE}


def key_of(*parts: str) -> int:
    """A short hash of what can be looked up. Two that are equal by chance cost a look, not an answer."""
    return zlib.crc32("\0".join(parts).encode("utf-8", "surrogatepass"))


def keys_of(sort: str, languages: str) -> Callable[[str], int]:
    """The keys of names, for what is looked up in one table of all files."""
    begin = key_of(sort, languages, "")
    return lambda name: zlib.crc32(name.encode("utf-8", "surrogatepass"), begin)


def plain(part: Any) -> Any:
    """A statement without the place at which it stands; of an expression or type the fingerprint, which it keeps."""
    if isinstance(part, tuple):
        return part[: _ENDS.get(type(part))]
    try:
        return part.fingerprint
    except AttributeError:
        fields = [getattr(part, name) for name in part.__match_args__]
        object.__setattr__(part, "fingerprint", fingerprint((type(part).__name__, fields)))
        return part.fingerprint


def fingerprint(content: Any, default: Callable[[Any], Any] = plain) -> int:
    """A short hash of lists of statements, or of parts of these; `default` says what counts of such a part."""
    return zlib.crc32(orjson.dumps(content, default, orjson.OPT_PASSTHROUGH_DATACLASS))
