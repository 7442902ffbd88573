"""Results of library functions, derived from their arguments; each language has a table of them by name."""

import re
from collections.abc import Callable, Iterable, Sequence

from docindex_dagster.callgraph.extract.expressions import Expressions, Node, Read, Reader, part_of, parts_of, text_of
from docindex_dagster.callgraph.extract.renaming import Renaming
from docindex_dagster.callgraph.extract.types import declared_type
from docindex_dagster.callgraph.ir import (
    UNKNOWN,
    Attribute,
    Call,
    Collection,
    Element,
    Expression,
    Instance,
    Literal,
    Module,
    Name,
    Unknown,
    either,
    head,
    is_known,
)

Arguments = Sequence[Node]

_MOST = 12  # elements of a collection
_LONGEST_LOADER = 1000  # bytes
_LOADER = re.compile(
    r"\bimport\(\s*(?:/\*[^*]*\*/\s*)*([\"'`])(?P<module>[^\"'`$\n]+)\1\s*\)"
    # .then(module => module.Page), .then((module) => ({ default: module.Page }))
    r"(?:\s*\.then\(\s*\(?(?P<name>\w+)\)?\s*=>\s*(?:\(?\{\s*default:\s*)?(?P=name)\.(?P<member>\w+))?"
)
_LITERAL_MODULE = re.compile(r"([\"'`])[^\"'`$\n]+\1")
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
"""Methods of collections that pass each element to a callback (Java streams, Kotlin, LINQ)."""
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
"""Node types between a call and a function passed to it."""
_MAPPING = frozenset({"map", "mapNotNull", "compactMap", "Select", "flatMap", "SelectMany", "mapToObj"})
_FLATTENING = frozenset({"flatMap", "SelectMany"})
_ARITHMETIC = frozenset({*"+-*/%", ""})  # "" for Kotlin, whose nodes have no operator field
STRING = Literal("String")


def argument_nodes(call: Node, syntax: "Expressions") -> list[Node]:
    """Return the argument nodes of a call."""
    listed = call.child_by_field_name("arguments") or call.named_children[-1]
    if syntax.listed is not None:
        return [*syntax.listed(call, listed)]
    return parts_of(next((child for child in listed.named_children if child.type == "value_arguments"), listed))


def instance_of(node: Node | None) -> Expression:
    """Return an instance of the type in a node."""
    return something(text_of(node))


def something(written: str) -> Expression:
    """Return an instance of a type arguments as text."""
    declared = declared_type(written)
    return Instance(declared) if declared else UNKNOWN


def listed(values: Iterable[Expression]) -> Expression:
    """Return a collection of the known values."""
    known = tuple(
        value
        for value in dict.fromkeys(values)
        if value is not UNKNOWN and not isinstance(head(value), Literal | Instance)
    )
    return Collection(known) if known else UNKNOWN


def first(arguments: Arguments, read: Read) -> Expression:
    """Return the first argument."""
    return read(arguments[0]) if arguments else UNKNOWN


def last(arguments: Arguments, read: Read) -> Expression:
    """Return the last argument, or an empty collection."""
    return read(arguments[-1]) if arguments else Collection(())


def item(arguments: Arguments, read: Read) -> Expression:
    """Return an element of the first argument."""
    return Element(first(arguments, read))


def elements(arguments: Arguments, read: Read) -> Expression:
    """Return a collection of the elements of the last argument."""
    return Collection((Element(last(arguments, read)),))


def held(arguments: Arguments, read: Read) -> Expression:
    """Return a collection that holds the last argument."""
    value = last(arguments, read)
    return UNKNOWN if value is UNKNOWN or isinstance(value, Literal) else Collection((value,))


def collected(arguments: Arguments, read: Read) -> Expression:
    """Return a collection of all arguments."""
    return Collection(tuple(dict.fromkeys(filter(is_known, map(read, arguments[:_MOST])))))


def joined(arguments: Arguments, read: Read) -> Expression:
    """Return the first argument, a collection, extended with the other arguments."""
    return either((first(arguments, read), listed(map(read, arguments[1:]))))


def typed(arguments: Arguments, _: Read) -> Expression:
    """Return an instance of the type in the first argument."""
    return instance_of(arguments[0] if arguments else None)


def bounded(arguments: Arguments, _: Read) -> Expression | None:
    """Return a type parameter as an instance of its bound; None if it has no bound."""
    named = [one for one in arguments if one.type == "keyword_argument"]
    bounds = (one.child_by_field_name("value") for one in named if text_of(one.child_by_field_name("name")) == "bound")
    found = instance_of(next(bounds, None))
    return None if found is UNKNOWN else found


def module(arguments: Arguments, _: Read) -> Module | None:
    """Return the module named by the argument, if that is a literal."""
    name = text_of(arguments[0]) if len(arguments) == 1 else ""
    return Module(name[1:-1]) if _LITERAL_MODULE.fullmatch(name) else None


def loaded(arguments: Arguments, _: Read) -> Expression | None:
    """Return the export that an anonymous loader function loads: the default export of a module or a named one."""
    is_short = len(arguments) > 0 and arguments[0].end_byte - arguments[0].start_byte <= _LONGEST_LOADER
    found = _LOADER.search(text_of(arguments[0])) if is_short else None
    return Attribute(Module(found["module"]), found["member"] or "default") if found else None


def attribute(name: str) -> Callable[[Arguments, Read], Expression | None]:
    """Return a rule for an attribute of the only argument."""

    def of(arguments: Arguments, read: Read) -> Expression | None:
        value = read(arguments[0]) if len(arguments) == 1 else UNKNOWN
        return None if value is UNKNOWN else Attribute(value, name)

    return of


def object_and_method(call: Node, syntax: Expressions) -> tuple[Node | None, str]:
    """Return the receiver and the method name of a method call; (None, "") for other calls."""
    named: Node | None = call
    names = syntax.methods.get(call.type)
    if names is None:
        named = part_of(call, syntax.calls[call.type])
        names = syntax.members.get(named.type) if named is not None else None
    if named is None or names is None:
        return None, ""
    return part_of(named, names[0]), text_of(part_of(named, names[1])).lstrip(".?")


def mapped(call: Node, reader: Reader) -> Expression | None:
    """Return the collection that a mapping call creates from its receiver; None for other calls or if unknown."""
    owner, method = object_and_method(call, reader.syntax)
    if owner is None or method not in _MAPPING:
        return None
    function = call.child_by_field_name("arguments") or call.named_children[-1]
    while function.named_child_count == 1 and function.type in AROUND_ARGUMENTS:
        function = function.named_children[0]
    if function.type not in {"lambda_expression", "lambda_literal"}:
        called = reader.expression(function)
        result: Expression = Call(called) if function.type in {"method_reference", "callable_reference"} else UNKNOWN
    else:
        result = body_of(function, Element(reader.expression(owner)), reader)
    if not is_known(result):
        return None
    return Collection((Element(result) if method in _FLATTENING else result,))


def body_of(function: Node, argument: Expression, reader: Reader) -> Expression:
    """Return the result of an anonymous function whose body is an expression, for an argument."""
    parts = function.named_children
    if not parts or isinstance(head(argument), Unknown):
        return UNKNOWN
    result = reader.expression(parts[-1])
    if len(parts) == 1:
        return result
    parameter = text_of(parts[0]).strip("() ")
    if not parameter.isidentifier():
        return UNKNOWN
    return Renaming({Name(parameter): argument})[result]


def arithmetic(node: Node, reader: Reader) -> Expression | None:
    """Return the type of a binary operation: a string if an operand is one, or else the first known operand's type."""
    operator = text_of(node.child_by_field_name("operator"))
    if operator == "??":
        return None
    if operator not in _ARITHMETIC:
        return Literal("boolean")
    parts = [reader.expression(part) for part in parts_of(node)]
    return STRING if STRING in parts else next((part for part in parts if part is not UNKNOWN), UNKNOWN)
