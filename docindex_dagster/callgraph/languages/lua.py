"""Lua: syntax and rules.

Tables are the only kind of object in Lua. This module adds a definition for each table that contains functions, so that
it has members and bases like a class; its fallback is its base. A table also represents objects with it as their
metatable: `setmetatable(object, Class)` evaluates to its last argument.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from docindex_dagster.callgraph.extract.expressions import Expressions, Syntax
from docindex_dagster.callgraph.extract.library import last, module
from docindex_dagster.callgraph.ir import (
    FILE,
    THIS,
    Assignment,
    Attribute,
    Base,
    Collection,
    Definition,
    Expression,
    FileIR,
    Fill,
    Function,
    Instance,
    Literal,
    Name,
    Record,
    TypeRef,
    Unknown,
    children,
    collection_of,
    path,
    path_of,
)
from docindex_dagster.callgraph.modules import Search
from docindex_dagster.callgraph.nesting import FUNCTIONS, TABLE
from docindex_dagster.callgraph.resolver.values import MOST_VALUES, Resolution, Value, Values, found_by, functions
from docindex_dagster.callgraph.rules import Hooks, Queries, Rules, Unit

_EXPRESSIONS = Expressions(
    names=frozenset({"identifier"}),
    members={"dot_index_expression": ("table", "field"), "method_index_expression": ("table", "method")},
    calls={"function_call": "name"},
    items={"bracket_index_expression": "table"},
    through={"parenthesized_expression": "", "expression_list": ""},
    either={"binary_expression": ("left", "right")},
    collections={"table_constructor": "value"},
    keys={"field": "name", "bracket_index_expression": "field"},
    labels={"field": "name"},
    written=frozenset({"function_definition"}),
    library={"require": module, **dict.fromkeys(("setmetatable", "ipairs", "pairs"), last)},
    literals={"string": "string", "number": "number", "true": "boolean", "false": "boolean", "nil": "nil"},
    words={"self": "this"},
)

_ANONYMOUS = frozenset({"function_definition"})

SYNTAX = Syntax(
    ("lua",),
    _EXPRESSIONS,
    frozenset({"function_declaration"}) | _ANONYMOUS,
    _ANONYMOUS,
    frozenset({"assignment_statement", "field"}),
)

_BUILTINS = """
    _ENV _G _VERSION arg assert bit bit32 collectgarbage coroutine debug describe dofile error getfenv getmetatable io
    ipairs it jit load loadfile loadstring love math module newproxy next ngx os package pairs pcall print rawequal
    rawget rawlen rawset redis require select setfenv setmetatable string table tonumber tostring type unpack utf8 vim
    warn xpcall
"""

_MODULES = Search(
    tuple(f"{folder}{{}}{end}" for folder in ("", "lua/", "src/", "lib/", "app/") for end in (".lua", "/init.lua")),
    ending=".lua",
    is_dotted=True,
)


INDEX = "__index"
"""The field of a metatable that holds the fallback for member lookup."""
_THIS = re.compile(r"^this(?=\.|$)")
_MOST_FIELDS = 40  # of a table in a variable
_NO_BASES = Unknown | Literal | Collection | Function | Instance
_TABLE_NAMES = frozenset({"cls", "class", "klass"})
_GLOBALS = Name("_G")
_SUPERS = frozenset({"super", "__super", "_super"})
_RUNS = ("__call",)


def with_tables(ir: FileIR) -> FileIR:
    """Add definitions for the tables of a file, bases for their fallbacks, and assignments for their fields."""
    tables = _tables(ir)
    assignments = [*ir.assignments, *(one for fill in ir.fills for one in _fields(fill))]
    written = _written(ir.definitions)
    assignments = [_by_id(one, one.value, written) if isinstance(one.value, Record) else one for one in assignments]
    objects = _objects(assignments, ir, tables)
    return replace(
        ir,
        definitions=(*ir.definitions, *tables.values()),
        assignments=(*assignments, *_records(assignments, tables)),
        parameters=tuple(one._replace(value=objects.get((one.scope, one.name), one.value)) for one in ir.parameters),
        bases=(*ir.bases, *_bases(assignments, tables)),
    )


def assigned_fields(assignments: Iterable[Assignment]) -> list[Assignment]:
    """Return the assignments to fields of any table."""
    known = (one for one in assignments if not isinstance(one.value, Unknown))
    return [one for one in known if isinstance(collection_of(one.target), Attribute)]


def bases_named(base: Expression) -> Iterator[str]:
    """Yield the names in the fallback of a table; they serve to find tables derived from a table."""
    stack = [base]
    while stack:
        match stack.pop():
            case Name(text) | Instance(TypeRef(text)):
                yield text.rpartition(".")[2]
            case Attribute(of, name):
                yield name
                stack.append(of)
            case one:
                stack += children(one)


def _tables(ir: FileIR) -> Mapping[str, Definition]:
    """Return a definition for each path that contains functions, by qualified name."""
    known = {one.qualified for one in ir.definitions}
    exported = {path_of(one.value) for one in ir.exports}
    found: dict[str, Definition] = {}
    for one in ir.definitions:
        table = one.parent
        while table and table not in known and table not in found:
            around, _, name = table.rpartition(".")
            is_local = bool(around) or table in exported
            found[table] = Definition(table, name, TABLE, table, around, None, is_local, one.line, one.byte)
            table = around
    return found


def _fields(fill: Fill) -> Iterator[Assignment]:
    """Yield the fields of a table constructor as assignments."""
    table = THIS if fill.type == "self" else path(fill.type)
    for one in fill.arguments:
        if one.name and not isinstance(one.value, Unknown):
            yield Assignment("bind", fill.scope, Attribute(table, one.name), one.value, 0, 0)


def _written(definitions: Iterable[Definition]) -> Mapping[tuple[str, str], Sequence[Definition]]:
    """Return the definitions by parent and name."""
    found = defaultdict(list)
    for definition in definitions:
        found[definition.parent, definition.name].append(definition)
    return found


def _by_id(one: Assignment, value: Record, written: Mapping[tuple[str, str], Sequence[Definition]]) -> Assignment:
    """Replace the anonymous functions in an assigned table with their ids."""

    def named(part: Expression) -> Expression:
        known = written.get((one.scope, part.name), ()) if isinstance(part, Function) else ()
        at = next((inside for inside in known if inside.line >= one.line), None)
        return Function(at.id) if at else part

    return one._replace(value=Record(tuple((name, named(part)) for name, part in value.fields)))


def _objects(
    assignments: Iterable[Assignment], ir: FileIR, tables: Mapping[str, Definition]
) -> dict[tuple[str, str], Expression]:
    """Return the table that contains each method, by function and first parameter, which is the receiver."""
    functions = {one.qualified: one.id for one in ir.definitions}
    first: dict[str, str] = {}
    for parameter in ir.parameters:
        first.setdefault(parameter.scope, parameter.name)
    found: dict[tuple[str, str], Expression] = {}
    for one in assignments:
        match one:
            case Assignment(target=Attribute(of, _), value=Name() as value):
                function = functions.get(_qualified(one.scope, value), "")
                if first.get(function) == "self":
                    found[function, "self"] = of
            case Assignment(target=Name() | Attribute() as table, value=Record(fields)):
                written = [part.name for _, part in fields if isinstance(part, Function)]
                found |= {(function, first[function]): table for function in written if function in first}
    metamethods = [one for one in ir.definitions if one.name.startswith("__") and one.kind == "function"]
    inside = [one for one in metamethods if one.id in first and one.parent in tables]
    return found | {(one.id, first[one.id]): Name(tables[one.parent].name) for one in inside}


def _records(assignments: Sequence[Assignment], tables: Mapping[str, Definition]) -> Iterator[Assignment]:
    """Yield a record for the fields assigned to a variable in its scope, if it is not a table with functions."""
    variables = {(one.scope, one.target) for one in assignments if isinstance(one.target, Name)}
    fields: dict[tuple[str, Expression], dict[str, Expression]] = defaultdict(dict)
    for one in assignments:
        match one.target:
            case Attribute(of, name) if (one.scope, of) in variables and not isinstance(one.value, Unknown | Literal):
                if _qualified(one.scope, of) not in tables:
                    fields[one.scope, of].setdefault(name, one.value)
    for (scope, variable), known in fields.items():
        yield Assignment("bind", scope, variable, Record(tuple(known.items())[:_MOST_FIELDS]), 0, 0)


def _bases(assignments: Iterable[Assignment], tables: Mapping[str, Definition]) -> Iterator[Base]:
    """Yield the fallbacks of tables: other values assigned to them, and their `__index`."""
    for one in assignments:
        table, values = one.target, [one.value]
        match one:
            case Assignment(target=Attribute(of, name)) if name == INDEX:
                table = of
            case Assignment(value=Record(fields)):  # an inline metatable
                values = [*(part for name, part in fields if name == INDEX), one.value]
        qualified = _qualified(one.scope, table)
        for value in values if qualified in tables else ():
            if not isinstance(value, _NO_BASES) and _qualified(one.scope, value) != qualified:
                yield Base("base", one.scope, qualified, value, one.line, one.byte)


def _qualified(scope: str, target: Expression) -> str:
    """Return the qualified name of a variable or path in a scope; "" for anything else."""
    written = _THIS.sub("self", path_of(target))
    return f"{scope}.{written}" if written and scope != FILE else written


def _this(q: Queries, unit: Unit, scope: str) -> Sequence[Value]:
    """Resolve `self`, an ordinary name in Lua: a variable, the enclosing table or a parameter."""
    for around in unit.around(scope):
        if around.kind in FUNCTIONS:
            if unit.bindings_of(around.id, "this"):
                return q.bound(unit, around.id, f"{around.qualified}.self", "this")
            has_self = unit.has_parameter(around.id, "self")
            if has_self or around.kind == "method":
                owner = q.owner(unit, around.id)
                return [owner.as_kind("object")] if owner else (q.parameter(unit, around, "self") if has_self else ())
    return q.bound(unit, FILE, "self", "this")


def _returns_itself(unit: Unit, function: Value, bound: Sequence[Expression], returned: Expression) -> bool:
    """Return whether a function returns its receiver or its first parameter, if that is a class table."""
    if THIS in bound or not isinstance(returned, Name):
        return THIS in bound
    parameters = unit.parameters.get(function.name, ())
    is_table = returned.text in _TABLE_NAMES or unit.definitions[function.name].name in _RUNS
    return bool(parameters) and parameters[0].name == returned.text and is_table


def _runs(q: Queries, value: Value) -> Sequence[Value] | None:
    """Return the metamethod that runs when a table is called."""
    if value.kind != "object":
        return None
    return [one.holding((value,)) for name in _RUNS for one in functions(q.member(value, name))]


def _result(q: Queries, _: Unit, value: Value) -> Values | None:
    """Return an instance of a table that is called without `__call`, for classes created by libraries."""
    return (value,) if value.kind == "object" and not q.callable_of(value) else None


def _object_elements(q: Queries, value: Value) -> Sequence[Value]:
    """Return the values in a table that is not a class and has no fallback."""
    unit, table = q.unit(value.path), q.definition(value)
    inside = [one for some in unit.children.get(table.qualified, {}).values() for one in some]
    if any(one.kind == "method" or unit.has_parameter(one.id, "self") for one in inside):
        return ()
    if any(not isinstance(one.value, Record) for one in unit.bases.get(table.id, ())):
        return ()
    found = q.all_defined(unit, inside, Resolution.ELEMENT)
    for one in unit.assigned:  # only in the scope of the table
        is_field = isinstance(one.target, Attribute) and path_of(one.target.of) == table.name
        if is_field and one.scope == table.parent:
            found += found_by(q.values(unit, one.scope, one.value), Resolution.ELEMENT)
    return found if len(found) <= MOST_VALUES else ()


def _member(q: Queries, value: Value, name: str) -> Values | None:
    """Resolve `super` and similar names that class libraries use for the base."""
    return (q.direct_bases(value.path, value.name) or None) if name in _SUPERS else None


def _attribute(q: Queries, unit: Unit, of: Expression, name: str) -> Sequence[Value] | None:
    """Resolve a global accessed through `_G`."""
    return ([*q.shared(unit, name)] or q.values(unit, FILE, Name(name))) if of is _GLOBALS else None


RULES = Rules(
    "lua",
    find=_MODULES.find,
    sharing="global",
    redefines=True,
    has_class_scope=False,
    has_open_dispatch=True,
    has_tables=True,
    exports_single_value=True,
    runs=_RUNS,
    constructors=frozenset({"init", "initialize", "_init", "__init", "new", "ctor", "constructor"}),
    builtins=frozenset(_BUILTINS.split()),
    hooks=Hooks(
        prepare=with_tables,
        this=_this,
        attribute=_attribute,
        member=_member,
        runs=_runs,
        result=_result,
        returns_itself=_returns_itself,
        object_elements=_object_elements,
    ),
)
