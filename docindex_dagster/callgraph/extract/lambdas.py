"""What the methods of the libraries make of the functions without a name that they are given."""

from typing import TYPE_CHECKING

from docindex_dagster.callgraph.extract.expressions import Expressions, Reader, part_of, parts_of, text_of
from docindex_dagster.callgraph.extract.renaming import Renaming
from docindex_dagster.callgraph.ir import (
    UNKNOWN,
    Call,
    Collection,
    Element,
    Expression,
    Literal,
    Name,
    Unknown,
    head,
    is_known,
)

if TYPE_CHECKING:
    from tree_sitter import Node

_ITEMS_NAMES = """
    forEach filter map flatMap anyMatch allMatch noneMatch mapToInt mapToLong mapToDouble mapToObj peek removeIf
    ifPresent ifPresentOrElse takeWhile dropWhile forEachOrdered onEach filterNot mapNotNull associateBy
    associateWith associate groupBy sortedBy sortedByDescending any all none count sumOf sumBy maxBy minBy
    maxByOrNull minByOrNull maxOf minOf maxOfOrNull minOfOrNull first firstOrNull last lastOrNull single
    singleOrNull find partition joinToString distinctBy removeAll retainAll indexOfFirst flatMapTo mapTo findLast
    ForEach Where Select SelectMany OrderBy OrderByDescending ThenBy ThenByDescending Any All First FirstOrDefault
    Single SingleOrDefault Last LastOrDefault Count Sum Min Max Average GroupBy ToDictionary ToLookup TakeWhile
    SkipWhile MinBy MaxBy DistinctBy Find FindAll FindIndex FindLast Exists RemoveAll TrueForAll
"""
ITEMS_TO_FUNCTIONS = frozenset(_ITEMS_NAMES.split())
"""Methods of collections that give each element to a function (Java's streams, Kotlin, LINQ)."""

AROUND_ARGUMENTS = frozenset(
    {
        "annotated_lambda",
        "argument",
        "argument_list",
        "call_suffix",
        "value_argument",
        "value_arguments",
    }
)
"""Types of nodes between a call and a function that it is given."""

_MAPPING = frozenset({"map", "mapNotNull", "compactMap", "Select", "flatMap", "SelectMany", "mapToObj"})
_FLATTENING = frozenset({"flatMap", "SelectMany"})
_ARITHMETIC = frozenset({*"+-*/%", ""})  # Kotlin has nodes of their own for these
STRING = Literal("String")


def object_and_method(call: "Node", syntax: Expressions) -> "tuple[Node | None, str]":
    """The object of which a call names a method, and its name; None of any other call."""
    named: Node | None = call
    names = syntax.methods.get(call.type)
    if names is None:
        named = part_of(call, syntax.calls[call.type])
        names = syntax.members.get(named.type) if named is not None else None
    if named is None or names is None:
        return None, ""
    return part_of(named, names[0]), text_of(part_of(named, names[1])).lstrip(".?")


def mapped(call: "Node", reader: Reader) -> Expression | None:
    """A collection of what a call makes of what its object holds; None of other calls, or where nothing is known."""
    owner, method = object_and_method(call, reader.syntax)
    if owner is None or method not in _MAPPING:
        return None
    function = call.child_by_field_name("arguments") or call.named_children[-1]
    while function.named_child_count == 1 and function.type in AROUND_ARGUMENTS:
        function = function.named_children[0]
    if function.type not in {"lambda_expression", "lambda_literal"}:
        called = reader.expression(function)
        made: Expression = Call(called) if function.type in {"method_reference", "callable_reference"} else UNKNOWN
    else:
        made = body_of(function, Element(reader.expression(owner)), reader)
    if not is_known(made):
        return None
    return Collection((Element(made) if method in _FLATTENING else made,))


def body_of(function: "Node", given: Expression, reader: Reader) -> Expression:
    """What a function without a name, that is one expression, gives for what it is given."""
    parts = function.named_children
    if not parts or isinstance(head(given), Unknown):
        return UNKNOWN
    made = reader.expression(parts[-1])
    if len(parts) == 1:
        return made
    parameter = text_of(parts[0]).strip("() ")
    if not parameter.isidentifier():
        return UNKNOWN
    return Renaming({Name(parameter): given})[made]


def arithmetic(node: "Node", reader: Reader) -> Expression | None:
    """The type of what is computed of two values: a string where one of them is, else what is known of the first."""
    operator = text_of(node.child_by_field_name("operator"))
    if operator == "??":
        return None
    if operator not in _ARITHMETIC:
        return Literal("boolean")
    parts = [reader.expression(part) for part in parts_of(node)]
    return STRING if STRING in parts else next((part for part in parts if part is not UNKNOWN), UNKNOWN)
