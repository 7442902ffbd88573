"""What a definition stands for where its name is used."""

from collections.abc import Iterator

from docindex_dagster.callgraph.ir import Call, Definition
from docindex_dagster.callgraph.languages.lua import TABLE
from docindex_dagster.callgraph.nesting import FUNCTIONS
from docindex_dagster.callgraph.offers import is_class, last_name
from docindex_dagster.callgraph.resolver import builtins
from docindex_dagster.callgraph.resolver.hierarchy import same_named
from docindex_dagster.callgraph.resolver.queries import Queries
from docindex_dagster.callgraph.resolver.value_sets import MOST_VALUES, found_by
from docindex_dagster.callgraph.resolver.values import Resolution, Value, Values, external_object
from docindex_dagster.callgraph.units import Unit


def defined(q: Queries, unit: Unit, definition: Definition, resolution: Resolution) -> Values:
    """What a definition stands for where its name is used."""
    rules, kind, parent = unit.rules, definition.kind, definition.parent
    is_beside = kind == "impl" and (rules.has_impls or rules.has_protocols)
    if is_beside or (kind == "macro" and rules.has_macro_names):
        return ()
    if kind == TABLE:
        return (Value("object", unit.path, definition.id, resolution),)
    if is_class(definition):
        first = unit.definitions[definition.qualified]  # of the parts of a class
        is_part = rules.has_partial_classes and is_class(first)
        return (Value("class", unit.path, first.id if is_part else definition.id, resolution),)
    if kind in FUNCTIONS:
        function = Value("function", unit.path, definition.id, resolution)
        return (function, *_decorated(q, unit, definition)) if rules.has_decorators else (function,)
    if kind == "type" and rules.separates_kinds and definition.returns:  # of functions
        return (external_object(definition.name, resolution),)
    inside = unit.binds(definition.id, definition.name) if kind in {"type", "constant"} else ()
    found = q.each(unit, parent, (inside or unit.binds(parent, definition.name))[:MOST_VALUES])
    if not found and definition.returns:
        found = q.typed(unit, parent, definition.returns, None)
    return tuple(found_by(found, resolution))


def _decorated(q: Queries, unit: Unit, definition: Definition) -> Iterator[Value]:
    """The object that the outermost decorator makes of a function: as it is declared, or of its own class."""
    for expression in unit.decorated_by(definition.id)[:1]:
        is_called = isinstance(expression, Call)
        callee = expression.callee if isinstance(expression, Call) else expression
        for decorator in q.values(unit, definition.parent, callee):
            for given in _declared_results(q, decorator):
                of_callable = given.held[-1:] if builtins.is_callable(given.name) else ()
                made = of_callable if is_called else (given,)
                yield from (one.found(Resolution.RETURNED) for one in made if one.kind == "object")


def _declared_results(q: Queries, function: Value) -> Iterator[Value]:
    """What a function, or each of its overloads, is declared to give; of a class, an object."""
    if function.kind == "class":
        yield function.as_kind("object")
    if function.kind == "function":
        unit, own = q.unit(function.path), q.definition(function)
        overloads = [one for one in same_named(unit, own.qualified) if _is_overload(unit, one)]
        for one in overloads or [own]:
            yield from q.typed(unit, one.id, one.returns, None) if one.returns else ()


def _is_overload(unit: Unit, definition: Definition) -> bool:
    """Whether a function of Python is only declared, as one of several."""
    return any(last_name(value) == "overload" for value in unit.decorated_by(definition.id))
