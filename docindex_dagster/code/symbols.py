"""The symbols that a source file defines."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Symbol:
    """One definition: a function, method, class, type or the like.

    The span covers the whole definition with its decorators and leading comment; bytes are offsets into UTF-8,
    lines are 1-based and inclusive.
    """

    name: str
    kind: str  # function | method | class | interface | struct | enum | trait | module | type | constant …
    qualified_name: str  # dotted path within the file: Outer.Inner.method
    parent: str | None  # qualified name of the enclosing symbol
    signature: str | None
    start_line: int
    end_line: int
    start_byte: int
    end_byte: int
    parameters: tuple[str, ...] | None = None
    return_type: str | None = None
    decorators: tuple[str, ...] | None = None
    docstring: str | None = None


# Every kind that a query file names.
SYMBOL_KINDS = (
    *("class", "constant", "enum", "function", "impl", "interface", "macro", "method", "module", "property"),
    *("struct", "trait", "type", "union"),
)
