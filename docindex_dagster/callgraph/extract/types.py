"""Parser for declared types: from the text in code or comments to a `TypeRef`.

One parser serves all languages: `[]Order` in one is `Order[]` or `list[Order]` in others.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from docindex_dagster.callgraph.ir import EITHER, ROOT, TypeRef

_LONGEST = 160  # characters
_SPACES = re.compile(r"\s+")
_WORDS = re.compile(
    r"\b(?:const|mut|readonly|final|volatile|struct|union|enum|class|typename|dyn|impl|static|ref|out|in|params|"
    r"suspend|noexcept|constexpr|unsigned|signed)\b|'\w+\b(?!')|\.\.\."
)
_NOTHING = re.compile(r"^(?:None|null|undefined|nil|void|var|auto)$")
_ARRAY = re.compile(r"^(?:\[\w*\])+\s*([^\[\]\s].*)$|^(.*?)(?:\[\d*\])+$", re.DOTALL)
_BEHIND_NAME = re.compile(r"(?<=\w)\\")
_PLAIN = re.compile(r"[\w.\\]+(?:<[\w.,<>: ]*>)?")  # only a name with type arguments
_MAP = re.compile(r"^map\[([^\]]*)\](.*)$", re.DOTALL)
# Kotlin and Swift
_ARROW = re.compile(r"^\(?(?:([\w.<>?, ]+)\.)?\(([^()]*)\) ?(?:async )?(?:throws )?-> ?.*$", re.DOTALL)
_PLAIN_ARROW = re.compile(r"^([\w.]+(?: ?\[.*\])?) ?=> ?.*$", re.DOTALL)  # Scala
_RESULT = re.compile(r"^\s*(?:<.*?>\s*\(.*?\)\s*)?=>\s*(.*)$", re.DOTALL)  # TypeScript
_SLICE = re.compile(r"^\[([^,;]*)(?:;[^\]]*)?\]$", re.DOTALL)
_CHANNEL = re.compile(r"^(?:<- ?)?chan(?: ?<-| ) ?(.*)$", re.DOTALL)
_FUNCTION = re.compile(r"^(?:func|fn|Fn|FnMut|FnOnce) ?(?=\()")
_ERRORS = re.compile(
    r"^(?:error ?\{[^{}]*\}|\w[\w.]*)!(?=[\w?*]|\[[\]:*\d])"
)  # Zig: the error set before the result type
_RESULT_NAME = re.compile(r"^(?!(?:chan|func|map|fn) )\w+ +(?=\S)")
_ARGUMENT_NAME = re.compile(r"^\w+ ?= ?")
_NAME = re.compile(r"(?:\\\.)?[^\W\d][\w$]*(?:\.[^\W\d][\w$]*)*")


_NO_TYPE = TypeRef("?")
_TAGS = re.compile(r"@(?:phpstan-|psalm-)?(param|return)\s+")
_NO_BRACKET = re.compile(r"[^\s<({]*(?=\s)")
_VARIABLE = re.compile(r"\s*(?:\.\.\.)?(\$\w+)")
_PLAIN_NAME = re.compile(
    r"(?:array|bool|boolean|callable|float|int|integer|iterable|mixed|never|null|object|resource|scalar|string|void|"
    r"true|false|T\w*)?$",
    re.IGNORECASE,
)


@lru_cache(maxsize=20_000)
def declared_type(written: str) -> TypeRef | None:
    """Parse a declared type; None if it has no resolvable name."""
    if len(written) > _LONGEST:
        return None
    text = written.strip().removeprefix("->").lstrip(": ").strip("\"'").replace("::", ".")
    if ROOT in text:  # a separator between names, or an absolute name
        text = _BEHIND_NAME.sub(".", text).replace(ROOT, f"{ROOT}.")
    text = _SPACES.sub(" ", text)
    text = _ERRORS.sub("", text)
    return TypeRef("static") if text.strip("?") == "static" else _type(text, 0)


def declared_name(written: str) -> str:
    """Return the name of a declared type, without its arguments; "" if it has none."""
    found = declared_type(written)
    return found.name if found else ""


def _type(text: str, depth: int) -> TypeRef | None:  # noqa: C901, PLR0911 one case per notation
    text = _WORDS.sub(" ", text).replace("&", " ").replace("*", " ").strip(" ?!.:")
    if not text or depth > 5 or _NOTHING.match(text):  # noqa: PLR2004 deeper types do not occur
        return None
    text = _split(text, "+")[0].strip()
    if not text:
        return None
    if function := _FUNCTION.match(text):
        return _function(text[function.end() :], depth)
    if text[0] in "(<" and (result := _RESULT.match(text[_closed_at(text) if text[0] == "(" else 0 :])):
        return _generic("func", [result[1]], depth)
    if text[0] == "(" and _closed_at(text) == len(text) and len(results := _results(text[1:-1])) > 1:
        return _generic("tuple", results, depth)
    parts = [part for part in _split(text, "|") if not _NOTHING.match(part.strip())]
    if len(parts) != 1:
        return _one_of(parts, depth)
    text = parts[0].strip()
    if not _PLAIN.fullmatch(text) and (known := _in_notation(text, depth)):
        return known
    name = _NAME.match(text)
    if name is None:
        inner = text.strip("()[] ")
        return _type(inner, depth + 1) if inner != text else None
    rest = text[name.end() :].strip()
    if rest[:1] == "[" and rest[-1:] == "]" and name[0].rpartition(".")[2] == "Union":
        return _one_of(_split(rest[1:-1], ","), depth)
    if rest[:1] in {"<", "["} and rest[-1:] in {">", "]"}:
        return _generic(name[0], _split(rest[1:-1], ","), depth)
    return TypeRef(name[0]) if not rest or rest.startswith(("=", ",", "{", "(")) else _last_word(text, depth)


def _in_notation(text: str, depth: int) -> TypeRef | None:  # noqa: PLR0911 one case per notation
    """Parse a map, array, function or channel in a language's own notation; None for any other type."""
    if mapping := _MAP.match(text):
        return _generic("map", [mapping[1], mapping[2]], depth)
    if array := _ARRAY.match(text):
        return _generic("Array", [array[1] or array[2] or ""], depth)
    if function := _PLAIN_ARROW.match(text):
        return _function_taking(["", function[1]], depth)
    if function := _ARROW.match(text):
        return _function_taking([function[1] or "", *_split(function[2], ",")], depth)
    if slice_ := _SLICE.match(text):
        return _generic("Array", [slice_[1]], depth)
    if channel := _CHANNEL.match(text):
        return _generic("chan", [channel[1]], depth)
    return None


def _one_of(parts: Iterable[str], depth: int) -> TypeRef | None:
    """Return a union of several types; as a type argument, only the first of them."""
    known = tuple(dict.fromkeys(filter(None, (_type(part, depth + 1) for part in parts))))
    return TypeRef(EITHER, known) if len(known) > 1 and depth == 0 else next(iter(known), None)


def _function(text: str, depth: int) -> TypeRef:
    """Parse a function type, starting at its parameters; its argument is the result type."""
    result = _type(text[_closed_at(text) :].strip().removeprefix("->"), depth + 1)
    return TypeRef("func", (result,) if result else ())


def _function_taking(types: Iterable[str], depth: int) -> TypeRef:
    """Return a function type with its receiver type and parameter types as arguments."""
    return TypeRef("fun", tuple(_type(written.strip(), depth + 1) or _NO_TYPE for written in types))


def _closed_at(text: str) -> int:
    """Return the offset after the bracket that closes the first one."""
    depth = 0
    for at, character in enumerate(text, 1):
        depth += (character in "([{") - (character in ")]}")
        if depth == 0:
            return at
    return len(text)


def _results(written: str) -> list[str]:
    """Return the types of several results, which may have names: `a, b int, err error` is int, int, error."""
    found: list[str] = []
    parts = [part.strip() for part in _split(written, ",") if part.strip()]
    has_names = any(_RESULT_NAME.match(part) for part in parts)
    last = ""
    for part in reversed(parts):
        name = _RESULT_NAME.match(part)
        last = part[name.end() :] if name else last if has_names else part
        found.append(last)
    return found[::-1]


def _last_word(text: str, depth: int) -> TypeRef | None:
    """Parse the last word of a type: `long` in `unsigned long`, `Order` in `public Order`."""
    *_, last = _split(text, " ")
    return _type(last, depth + 1) if last != text else None


def _generic(name: str, arguments: list[str], depth: int) -> TypeRef:
    written = [_ARGUMENT_NAME.sub("", argument.strip()) for argument in arguments if argument.strip()]
    return TypeRef(name, tuple(_type(argument, depth + 1) or _NO_TYPE for argument in written))


def _split(text: str, mark: str) -> list[str]:
    """Split a text at the marks outside brackets."""
    if mark not in text:
        return [text]
    parts, depth = [""], 0
    for character in text:
        depth += (character in "<[({") - (character in ">])}")
        if character == mark and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def types_in(comment: str) -> Iterator[tuple[str, TypeRef]]:
    """Yield the documented types of parameters, by name, and of the return value, by ""."""
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
    """Return the type after a tag; None if it has no resolvable name."""
    _, found, _ = comment.partition(f"{tag} ")
    written, _ = _type_at(comment, comment.index(tag) + len(tag) + 1) if found else ("", 0)
    return _class_in(written)


def _class_in(written: str) -> TypeRef | None:
    """Parse a type; None for built-in types and for collections without an element type."""
    declared = declared_type(written)
    is_plain = declared is None or (not declared.arguments and _PLAIN_NAME.match(declared.name))
    return None if is_plain else declared


def _type_at(text: str, start: int) -> tuple[str, int]:
    """Return the text up to the first white space outside brackets, and its end."""
    if plain := _NO_BRACKET.match(text, start):
        return plain[0], plain.end()
    depth = 0
    for at in range(start, len(text)):
        character = text[at]
        depth += (character in "<({") - (character in ">)}")
        if character.isspace() and depth <= 0:
            return text[start:at], at
    return text[start:], len(text)
