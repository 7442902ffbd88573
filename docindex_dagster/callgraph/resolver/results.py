"""Type inference for call results, constructed objects and elements of collections."""

from collections.abc import Iterable, Iterator, Sequence

from docindex_dagster.callgraph import ir
from docindex_dagster.callgraph.resolver import builtins
from docindex_dagster.callgraph.resolver.hierarchy import ancestors, parts_of
from docindex_dagster.callgraph.resolver.imports import all_exported
from docindex_dagster.callgraph.resolver.queries import MOST_CALLERS, Queries
from docindex_dagster.callgraph.resolver.types import function_type, held_by, is_open, may_be_function
from docindex_dagster.callgraph.resolver.values import (
    FUNCTION_TYPE,
    MOST_VALUES,
    Resolution,
    Value,
    Values,
    external_object,
    found_by,
    functions,
    is_file,
    known,
)
from docindex_dagster.callgraph.units import Unit

_SELF_TYPES = frozenset({"this", "this.type", "Self", "self", "static", "$this"})
_SELF_MADE = frozenset({ir.New(ir.THIS), ir.Call(ir.THIS), ir.Call(ir.Name("new")), ir.Call(ir.path("this.new"))})
_WRITTEN = (ir.Collection, ir.Record, ir.Instance)
_OF_PROGRAM = frozenset({"function", "class", "object", "parent"})
_STATIC = ir.New(ir.Name("static"))
_POINTING = ("operator[]", "operator->", "operator*")
_BASES = frozenset({"class", "external", "function"})


def result(q: Queries, unit: Unit, value: Value) -> Sequence[Value]:  # noqa: PLR0911 one per kind
    """Return the result of calling a value."""
    rules = unit.rules
    if (hook := rules.hooks.result) is not None and (own := hook(q, unit, value)) is not None:
        return own
    match value.kind:
        case "class":
            return (value.as_kind("object"),)
        case "function":
            return q.returned(value)
        case "external":
            if rules.separates_kinds and (plain := builtins.plain_result(value)):
                return (plain,)
            found = builtins.result_of(rules, value) if value.held else ()
            return tuple(found) if value.held else (external_object(value.name, value.resolution),)
        case "object" | "module":
            return [item for member in callable_of(q, value) for item in result(q, unit, member)]
        case "external object" if value.name == FUNCTION_TYPE:
            return found_by(value.held, Resolution.RETURNED)
        case _:
            return ()


def callable_of(q: Queries, value: Value) -> Sequence[Value]:
    """Return the code that runs when a value is called."""
    hook = q.rules(value).hooks.runs if value.kind in _OF_PROGRAM else None
    if hook is not None and (own := hook(q, value)) is not None:
        return own
    if value.kind in {"function", "class", "external"}:
        return (value,)
    if value.kind == "object":
        names = () if function_type(q, value) else q.rules(value).runs
        return next(filter(None, (functions(q.member(value, name)) for name in names)), [])
    if value.kind == "parent":
        _, *others = ancestors(q, value)
        return [one for one in others if one.kind in _BASES][:1]
    return q.constructed_classes(value) if value.kind == "module" else ()


def new(q: Queries, unit: Unit, scope: str, cls: ir.Expression) -> list[Value]:
    """Return the objects created by `new` with an expression."""
    objects: list[Value] = []
    for value in constructed(q, unit, scope, cls):
        if unit.rules.has_prototypes and value.kind == "function":
            objects += [value.as_kind("object").holding(()), *q.returned(value)]
        else:
            objects += result(q, unit, value)
    return objects


def constructed(q: Queries, unit: Unit, scope: str, cls: ir.Expression) -> Sequence[Value]:
    """Return the classes that `new` with an expression instantiates."""
    if isinstance(cls, ir.Name) and unit.rules.separates_kinds:
        cls = ir.Name(cls.text, "type")
    values = q.values(unit, scope, cls)
    if cls is ir.THIS:
        values = tuple(value.as_kind("class") for value in values if value.kind == "object")
    found = [value for value in values if value.kind in {"class", "external"}]
    if not found:  # the class of the assignment target
        of_objects = (value for value in values if value.kind == "object" and q.rules(value).separates_kinds)
        found = [value.as_kind("class") for value in of_objects]
    return found or [cls for value in values for cls in q.constructed_classes(value)]


def returned(q: Queries, value: Value) -> Values:
    """Return the values returned from a function, by declared type or return statements."""
    unit = q.unit(value.path)
    declared, receiver = unit.definitions[value.name].returns, value.held[:1]
    found: list[Value] = []
    if declared:
        if receiver and not declared.arguments and declared.name in _SELF_TYPES:
            return tuple(found_by(receiver, Resolution.RETURNED))
        cls = unit.class_around(value.name) if receiver else None
        holder = Value("class", unit.path, cls.id) if cls else None
        type_values = held_by(q, receiver[0], holder) if receiver else None
        found = found_by(q.typed(unit, value.name, declared, type_values), Resolution.RETURNED)
        is_closed = any(not is_open(q, one) for one in found) and not may_be_function(q, found)
        if unit.rules.separates_kinds or is_closed:
            return tuple(found)
    inferred: list[Value] = [one for one in found if one.held or one.kind == "object"]
    for expression in _returns(q, unit, value)[:MOST_VALUES]:
        inferred += _of_return(q, unit, value, expression)
    return tuple(found_by(inferred, Resolution.RETURNED))


def _of_return(q: Queries, unit: Unit, function: Value, expression: ir.Expression) -> Values:
    """Return the values of a returned expression; the receiver if the function returns its own object."""
    receiver = function.held[:1]
    bound = [one for one in _bound(unit, function.name, expression) if not isinstance(one, (ir.Collection, ir.Record))]
    source, is_itself = bound[0] if len(bound) == 1 else expression, unit.rules.hooks.returns_itself
    if receiver and (source is ir.THIS or expression is _STATIC):
        return receiver
    if receiver and is_itself is not None and is_itself(unit, function, bound, source):
        return receiver
    if receiver and source in _SELF_MADE and receiver[0].kind == "class":
        return (receiver[0].as_kind("object"),)
    return q.values(unit, function.name, expression)


def _bound(unit: Unit, scope: str, expression: ir.Expression) -> Sequence[ir.Expression]:
    """Return the expressions assigned to a variable or attribute in a function."""
    if isinstance(expression, (ir.Name, ir.NameOrCall)):
        return unit.bindings_of(scope, expression.text)
    paths = unit.dotted.get(scope)
    return paths.get(ir.path_of(expression), ()) if paths else ()


def _returns(q: Queries, unit: Unit, function: Value) -> Sequence[ir.Expression]:
    """Return the returned expressions, without parameters, which depend on the call, unless there is only one call."""
    expressions = unit.returns.get(function.name, ())
    parameters = unit.parameters.get(function.name, ()) if expressions else ()
    unbound = {
        one.name
        for one in parameters
        if not isinstance(one.value, ir.Instance) and not unit.bindings_of(function.name, one.name)
    }
    parts = [one.parts if isinstance(one, ir.Union) else (one,) for one in expressions]
    others = [
        tuple(part for part in some if not isinstance(part, (ir.Name, ir.NameOrCall)) or part.text not in unbound)
        for some in parts
    ]
    if others == parts or _is_called_once(q, unit, function):
        return expressions
    return [ir.Union(some) if len(some) > 1 else some[0] for some in others if some]


def _is_called_once(q: Queries, unit: Unit, function: Value) -> bool:
    callers = q.program.callers.get(unit.rules.family, unit.definitions[function.name].name, MOST_CALLERS + 1)
    if not 1 < len(callers) <= MOST_CALLERS:
        return len(callers) <= 1
    reached = (q.table.without_callers(q.targets, q.unit(path), call) for path, call in callers)
    return sum(any(one.is_same(function) for one in targets) for targets in reached) <= 1


def elements(q: Queries, value: Value) -> Values:
    """Return the elements of a collection or of a value that can be iterated."""
    return tuple(_elements(q, value))


def _elements(q: Queries, value: Value) -> Iterable[Value]:  # noqa: PLR0911 one per kind
    is_of_program = value.kind in _OF_PROGRAM or is_file(value)
    hook = q.rules(value).hooks.elements if is_of_program else None
    if hook is not None and (own := hook(q, value)):
        return own
    match value.kind:
        case "collection":
            return found_by(value.held, Resolution.ELEMENT)
        case "literal" if _is_complete(q, value):  # includes the contents of its records
            several = (q.elements(one) if one.kind == "record" else (one,) for one in _entries(q, value))
            return found_by((one for some in several for one in some), Resolution.ELEMENT)
        case "record":
            unit, fields = q.unit(value.path), value.record.fields if value.record else ()
            return found_by(q.each(unit, value.name, [part for _, part in fields]), Resolution.ELEMENT)
        case "module" if not value.path.endswith("/"):
            return all_exported(q, value.path)
        case "external" | "external object":
            return found_by(value.held[-1:], Resolution.ELEMENT)
        case "function":  # nested collections are flattened
            return [value]
        case "object":
            return _of_object(q, value)
        case _:
            return ()


def _of_object(q: Queries, value: Value) -> Iterable[Value]:
    """Return the elements of an object that is an iterator, a container or a pointer."""
    rules = q.rules(value)
    for name in ("__getitem__", "__iter__", *_POINTING):
        if found := known(q.member(value, name)):
            return [item for member in found for item in result(q, q.unit(value.path), member)]
    if (hook := rules.hooks.object_elements) is not None and (own := hook(q, value)) is not None:
        return own
    return _of_generic_bases(q, value)


def _entries(q: Queries, table: Value) -> Values:
    """Return the values in a literal, without helper functions that its other functions call on the literal itself."""
    called = {call.callee for call in q.program.calls_in(q.unit(table.path), table.name)}
    return tuple(one for one in table.held if ir.Attribute(ir.THIS, one.name.rpartition(".")[2]) not in called)


def _is_complete(q: Queries, value: Value) -> bool:
    """Return whether a name is bound only to literals and declared types."""
    scope, _, name = value.name.rpartition(".")
    return all(isinstance(one, _WRITTEN) for one in q.unit(value.path).bindings_of(scope, name))


def _of_generic_bases(q: Queries, value: Value) -> Iterator[Value]:
    """Yield the elements of an object whose class derives from a generic library collection."""
    rules = q.rules(value)
    for cls in known(ancestors(q, value.as_kind("class"))):
        for unit, definition in parts_of(q, cls):
            for one in unit.bases.get(definition.id, ()):
                written = one.value.type if isinstance(one.value, ir.Instance) else None
                if written is None or not written.arguments or written.name == FUNCTION_TYPE:
                    continue
                if not rules.separates_kinds:
                    for base in q.typed(unit, definition.parent, written, None):
                        yield from q.elements(base) if base.kind == "external object" else ()
                elif builtins.is_collection(written.name):
                    yield from q.typed(unit, definition.id, written.arguments[-1], None)
