"""How SCIP names things: `SCHEME MANAGER PACKAGE VERSION DESCRIPTORS`, or `local NUMBER` within a file.

    scip-python python click 8.2 `click.core`/Context#invoke().

`Context#` is a type, `invoke().` a method in it. Spaces within a part, and backticks within a quoted name, are doubled.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

TYPE, METHOD, TERM, NAMESPACE, MACRO = "#", "().", ".", "/", "!"
_PARTS = 4  # before the descriptors
_NAME = r"(?:[\w+$-]+|`(?:[^`]|``)+`)"
_DESCRIPTOR = re.compile(
    rf"(?P<name>{_NAME})(?:\([\w+$-]*\)(?P<method>\.)|(?P<suffix>[/#.:!]))|\[(?P<generic>{_NAME})\]|\((?P<parameter>{_NAME})\)"
)
_PLAIN = re.compile(r"[\w+$-]+", re.ASCII)


class Descriptor(NamedTuple):
    """A step of a name: what it is called, and what sort of thing that is, by its suffix."""

    name: str
    suffix: str


class Symbol(NamedTuple):
    """The name of a thing that other files may see."""

    package: str  # scheme, manager, name and version
    descriptors: tuple[Descriptor, ...]

    @property
    def name(self) -> str:
        """What the thing itself is called."""
        return self.descriptors[-1].name

    @property
    def is_callable(self) -> bool:
        """Whether it is a function, a class or a macro."""
        return self.descriptors[-1].suffix in {METHOD, TYPE, MACRO}


@lru_cache(maxsize=100_000)
def parse(text: str) -> Symbol | None:
    """What a global symbol says; None of a local one, and of what is none.

    A name that ends within a descriptor is no symbol.
    """
    parts = text.replace("  ", "\0").split(" ", _PARTS)
    if len(parts) <= _PARTS or parts[0] == "local":
        return None
    written = parts[_PARTS].replace("\0", "  ")
    found, at = [], 0
    while at < len(written):
        match = _DESCRIPTOR.match(written, at)
        if match is None:
            return None
        found.append(_descriptor(match))
        at = match.end()
    return Symbol(" ".join(parts[:_PARTS]), tuple(found)) if found else None


def _descriptor(match: re.Match[str]) -> Descriptor:
    if match["name"] is not None:
        return Descriptor(_unquoted(match["name"]), METHOD if match["method"] else match["suffix"])
    if match["generic"] is not None:
        return Descriptor(_unquoted(match["generic"]), "[]")
    return Descriptor(_unquoted(match["parameter"]), "()")


def _unquoted(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


def written(scheme: str, manager: str, name: str, version: str, descriptors: Iterable[Descriptor]) -> str:
    """A symbol as a file of SCIP has it; an empty part becomes a point."""
    parts = (part.replace(" ", "  ") or "." for part in (scheme, manager, name, version))
    return f"{' '.join(parts)} {''.join(map(_written, descriptors))}"


def _written(descriptor: Descriptor) -> str:
    name = descriptor.name
    return f"{name if _PLAIN.fullmatch(name) else _quoted(name)}{descriptor.suffix}"


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
