"""The types that comments name: `@var Item[] $items`, `@param array<string, Item> $items`, `@return Item[]`."""

import re
from collections.abc import Iterator

from docindex_dagster.callgraph.extract.types import declared_type
from docindex_dagster.callgraph.ir import TypeRef

_TAGS = re.compile(r"@(?:phpstan-|psalm-)?(param|return)\s+")
_NO_BRACKET = re.compile(r"[^\s<({]*(?=\s)")
_VARIABLE = re.compile(r"\s*(?:\.\.\.)?(\$\w+)")
_PLAIN = re.compile(
    r"(?:array|bool|boolean|callable|float|int|integer|iterable|mixed|never|null|object|resource|scalar|string|void|"
    r"true|false|T\w*)?$",
    re.IGNORECASE,
)


def types_in(comment: str) -> Iterator[tuple[str, TypeRef]]:
    """The names of parameters, "" for what is returned, each with its type."""
    for tag in _TAGS.finditer(comment):
        written, end = _type_at(comment, tag.end())
        declared = _class_in(written)
        if declared is None:
            continue
        if tag[1] == "return":
            yield "", declared
        elif name := _VARIABLE.match(comment, end):
            yield name[1], declared


def type_after(tag: str, comment: str) -> TypeRef | None:
    """The type behind a tag; None where it names none that can be followed."""
    _, found, _ = comment.partition(f"{tag} ")
    written, _ = _type_at(comment, comment.index(tag) + len(tag) + 1) if found else ("", 0)
    return _class_in(written)


def _class_in(written: str) -> TypeRef | None:
    """A type that is not of the language itself; of a collection that says nothing of what it holds, none."""
    declared = declared_type(written)
    is_plain = declared is None or (not declared.arguments and _PLAIN.match(declared.name))
    return None if is_plain else declared


def _type_at(text: str, start: int) -> tuple[str, int]:
    """What stands before the first blank that is in no bracket."""
    if plain := _NO_BRACKET.match(text, start):
        return plain[0], plain.end()
    depth = 0
    for at in range(start, len(text)):
        character = text[at]
        depth += (character in "<({") - (character in ">)}")
        if character.isspace() and depth <= 0:
            return text[start:at], at
    return text[start:], len(text)
