"""The intermediate representation in Arrow: the table `references`, a row a file.

A row lists each text, type and expression of its file once; all else has their positions in these lists. What an
expression or a type is made of stands before it. Statements are in the order of the lists of `FileIR`, and what the
columns of one hold follows from its sort:

| sort | kinds | `scope` | `first` | `second` | others |
|---|---|---|---|---|---|
| definitions | seen, local | its id | name | kind | `third` qualified, `fourth` parent, `fifth` returns (-1: nothing) |
| calls | call, read, new, macro | scope | callee | | `arguments` |
| imports | name, all, directive, left out; passed on likewise | scope | name | module | `third` member |
| exports | | | name | value | |
| assignments | bind, store, initial, test, instance | scope | target | value | |
| parameters | plain, rest, block | scope | name | value | `third` label |
| returns | | scope | value | | |
| bases | base, implements, mixin, companion | scope | class | value | |
| decorators | | scope | decorated | value | |
| fills | | scope | type, as text | | `arguments` |
| generics | | scope | name | bound | |
| receivers | | scope | type | | |
| forwards | | scope | name | | |
| properties, hidden | | scope | | | |
"""

from collections.abc import Mapping

import pyarrow as pa

from docindex_dagster.callgraph.ir import (
    Attribute,
    Call,
    CallbackArgument,
    Collection,
    Element,
    Function,
    Implicit,
    Instance,
    Literal,
    Module,
    Name,
    NameOrCall,
    New,
    Record,
    Union,
    Unknown,
)

# Raise it with every change of what is extracted from the same file, or of how a row holds it.
REFERENCES_VERSION = "5"
# The key under which the metadata of a table hold what its rows were made with besides the bytes of the files.
MADE_WITH = b"docindex.references"

NUMBERS = pa.list_(pa.field("item", pa.int32(), nullable=False))


def _list_of(**columns: pa.DataType) -> pa.DataType:
    fields = [pa.field(name, kind, nullable=False) for name, kind in columns.items()]
    return pa.list_(pa.field("item", pa.struct(fields), nullable=False))


TEXTS = pa.list_(pa.field("item", pa.string(), nullable=False))
TYPES = _list_of(name=pa.int32(), arguments=NUMBERS)
EXPRESSIONS = _list_of(op=pa.int8(), text=pa.int32(), parts=NUMBERS)
ARGUMENTS = _list_of(value=pa.int32(), name=pa.int32(), is_block=pa.bool_())
OPERANDS = ("scope", "first", "second", "third", "fourth", "fifth", "line", "byte")
STATEMENTS = _list_of(kind=pa.int8(), **dict.fromkeys(OPERANDS, pa.int32()), arguments=ARGUMENTS)

# Sorted by path. Of a file whose structure cannot be had, all lists are empty, and `problem` says why.
REFERENCES = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("content_hash", pa.string(), nullable=False),
        pa.field("language", pa.string(), nullable=False),
        pa.field("problem", pa.string()),
        pa.field("namespace", pa.string(), nullable=False),
        pa.field("texts", TEXTS, nullable=False),
        pa.field("types", TYPES, nullable=False),
        pa.field("expressions", EXPRESSIONS, nullable=False),
        pa.field("statements", STATEMENTS, nullable=False),
    ]
)

KINDS: Mapping[str, tuple[object, ...]] = {
    "definitions": (False, True),
    "calls": ("call", "read", "new", "macro"),
    "imports": tuple(
        (kind, passed_on) for passed_on in (False, True) for kind in ("name", "all", "directive", "left out")
    ),
    "exports": ("",),
    "assignments": ("bind", "store", "initial", "test", "instance"),
    "parameters": ("", "rest", "block"),
    "returns": ("",),
    "bases": ("base", "implements", "mixin", "companion"),
    "decorators": ("",),
    "fills": ("",),
    "generics": ("",),
    "receivers": ("",),
    "forwards": ("",),
    "properties": ("",),
    "hidden": ("",),
}
"""The kinds of each sort of statement; the number of a kind is its position among all of them."""

OPS = (
    (Unknown, ""),
    (Name, ""),
    (Name, "function"),
    (Name, "type"),
    (NameOrCall, ""),
    (Implicit, ""),
    (Attribute, ""),
    (Call, ""),
    (New, ""),
    (Element, ""),
    (Instance, ""),
    (Literal, ""),
    (Union, ""),
    (Collection, ""),
    (Record, ""),
    (Function, ""),
    (CallbackArgument, ""),
    (Module, ""),
)
"""What an expression is, by its number. `text` is its name, of an `Instance` its type; `parts` are what it is made of.

The parts of a record are a name and a value each, those of a `CallbackArgument` what it is of, and the two numbers.
"""
