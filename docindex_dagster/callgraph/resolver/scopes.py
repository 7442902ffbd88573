"""Name resolution: the values of names by enclosing scopes, and of the definitions they refer to."""

from collections.abc import Sequence
from itertools import dropwhile

from docindex_dagster.callgraph.ir import FILE, Definition, Name
from docindex_dagster.callgraph.nesting import FUNCTIONS, TABLE, is_class
from docindex_dagster.callgraph.resolver import header_visibility
from docindex_dagster.callgraph.resolver.classes import declared_or_given, members, own_member
from docindex_dagster.callgraph.resolver.hierarchy import (
    ancestors,
    bases_of_unnamed,
    class_around,
    class_of,
    derived_classes,
    function_around,
)
from docindex_dagster.callgraph.resolver.hoisting import space_of
from docindex_dagster.callgraph.resolver.imports import (
    files_of,
    imported,
    is_marked,
    locally_imported,
    of_wildcard,
    shared,
)
from docindex_dagster.callgraph.resolver.members import of_literal
from docindex_dagster.callgraph.resolver.namespaces import fitting, outermost
from docindex_dagster.callgraph.resolver.queries import Queries
from docindex_dagster.callgraph.resolver.types import builtin
from docindex_dagster.callgraph.resolver.values import (
    MOST_VALUES,
    Resolution,
    Value,
    Values,
    distinct,
    external_object,
    found_by,
    known,
)
from docindex_dagster.callgraph.units import Unit

_MOST_MEANINGS = 2  # different sets of values for a variable
_HOLDING = frozenset({"collection", "record"})


def lookup(q: Queries, unit: Unit, scope: str, wanted: Name) -> Sequence[Value]:
    """Return the values of a name: from the enclosing scopes, or else from the names that the file defines or sees."""
    rules, name = unit.rules, wanted.text
    own = of_itself(q, unit, scope, name)
    if own is not None:
        return own
    is_included = rules.sharing == "included"
    sees_literals = rules.has_implicit_members and (
        rules.has_open_classes or (rules.separates_kinds and not rules.extends_receiver)
    )
    space = ""
    for around in unit.around(scope):
        if is_included and around.kind == "module":
            space = space or around.qualified
            break
        found = _in_scope(q, unit, around, scope, wanted)
        if found is not None:
            return found
        if sees_literals and around.parent and around.parent not in unit.definitions:
            sibling = of_literal(q, Value("literal", unit.path, around.parent), name)
            if sibling:
                return sibling
        space = space_of(unit, around) if is_included else ""
    if is_included:
        return header_visibility.looked_up(q, unit, header_visibility.enclosing_space(q, unit, space), name) or builtin(
            name, rules
        )
    if scope != FILE:
        return q.values(unit, FILE, wanted)
    return outermost(q, unit, wanted) if rules.separates_kinds else _in_file(q, unit, name)


def _in_scope(q: Queries, unit: Unit, around: Definition, scope: str, wanted: Name) -> Sequence[Value] | None:
    """Return the values of a name in one enclosing scope; None if the scope does not declare it."""
    rules = unit.rules
    if unit.generics and not (rules.separates_kinds and (wanted.space == "type" or not rules.has_extensions)):
        bounds = [one.bound for one in unit.generics.get(around.id, ()) if one.name == wanted.text]
        if bounds:
            return q.each(unit, around.id, bounds)
    if is_class(around):
        return _in_class(q, unit, around, scope, wanted)
    return _in_function(q, unit, around, wanted)


def _in_class(q: Queries, unit: Unit, around: Definition, scope: str, wanted: Name) -> Sequence[Value] | None:
    """Return the values of a name in the body of a class, where members need no receiver."""
    rules, name = unit.rules, wanted.text
    cls = class_of(q, unit, around)
    if name == around.name:
        is_library_extension = around.kind == "impl" and cls.name == around.id
        if is_library_extension or around.id in unit.hidden:
            return None
        if rules.separates_kinds and around.kind != "module":  # the class, not its constructor
            return q.defined(unit, around, Resolution.SCOPE) if rules.has_companions else [cls]
    is_body = around.id == scope and rules.has_class_scope and not rules.has_prototypes
    if not (rules.has_implicit_members or is_body or around.kind == "module"):
        return None
    if rules.has_function_names and not wanted.space and name[0].islower():  # a variable
        return ()
    owner = Value("class", unit.path, around.id) if rules.has_function_names else cls.as_kind("object")
    is_extended = (rules.extends_receiver or rules.has_extensions) and wanted.space != "type"
    if not rules.has_implicit_members and around.kind == "class":  # inherited members need a receiver
        found: Sequence[Value] = own_member(q, owner, owner, name)
    else:
        found = q.members_of(unit, scope, (owner,), name) if is_extended else q.member(owner, name)
    return fitting(found, wanted, rules)


def _in_function(q: Queries, unit: Unit, around: Definition, wanted: Name) -> Sequence[Value] | None:
    """Return the values of a name in a function: local imports, variables, parameters and nested definitions.

    For an extension function or a function with bases, also the members of the receiver or of the bases.
    """
    rules, name = unit.rules, wanted.text
    if rules.has_function_names and wanted.space == "function":
        inside = q.all_defined(unit, _named_in(unit, around.qualified, name), Resolution.SCOPE)
        return inside or locally_imported(q, unit, around.qualified, name) or None
    found = locally_imported(q, unit, around.qualified, name) if rules.has_local_imports else []
    is_variable = not (rules.separates_kinds and wanted.space)
    is_bound = is_variable and bool(unit.bindings_of(around.id, name))
    if is_bound:
        found = [*found, *bound(q, unit, around.id, f"{around.qualified}.{name}", name)]
    # If only external objects are assigned, the arguments of callers may tell more.
    is_outside = is_bound and all(value.kind == "external object" for value in found)
    if is_variable and unit.has_parameter(around.id, name) and (is_outside or not found):
        return [*found, *q.parameter(unit, around, name)]
    if found or is_bound:
        return found
    defined = _named_in(unit, around.qualified, name)
    found = q.all_defined(unit, defined, Resolution.SCOPE)
    is_plain = not (wanted.space or around.id in unit.bases or around.id in unit.receivers)
    if is_plain or not rules.separates_kinds:
        return found if defined else None
    if not found and wanted.space != "type":
        bases = (base for _, values in q.bases(unit, around) for base in values if base.kind == "class")
        owners = [base.as_kind("object") for base in bases]
        if rules.extends_receiver and around.id in unit.receivers:
            owners += q.typed(unit, around.id, unit.receivers[around.id], None)
        found = q.members_of(unit, around.id, tuple(owners), name)
    return fitting(found, wanted, rules)


def _in_file(q: Queries, unit: Unit, name: str) -> Sequence[Value]:
    """Return the values of a name at the top level of a file."""
    rules = unit.rules
    found: Sequence[Value] = top(q, unit, name, Resolution.FILE)
    if not found:
        found = [value for step in imported(q, unit, name) for value in step]
    if not found and rules.sharing != "file":
        found = [*shared(q, unit, name)]
    if not found:
        outer = (one for one in unit.wildcards if not one.scope)
        found = found_by((value for one in outer for value in of_wildcard(q, unit, one, name)), Resolution.IMPORT)
    if rules.has_module_paths and not known(found):
        found = files_of(q, unit, f"self.{name}") or files_of(q, unit, name) or found
    if not found and rules.has_namespaces:
        found = header_visibility.beyond(q, unit, name)
    if rules.has_export_lists and not found and name == unit.namespace:
        return [Value("module", unit.path, "")]
    if rules.has_tables:  # other files may add members to a library table
        return [*found, *builtin(name, rules)]
    return found or builtin(name, rules)


def top(q: Queries, unit: Unit, name: str, resolution: Resolution) -> list[Value]:
    """Return what a file itself defines or assigns under a name."""
    found = q.all_defined(unit, _named_in(unit, FILE, name), resolution)
    if not found and (find := unit.rules.hooks.top) is not None:
        found = find(q, unit, name, resolution)
    return found or found_by(bound(q, unit, FILE, name, name), resolution)


def bound(q: Queries, unit: Unit, scope: str, qualified: str, name: str) -> list[Value]:
    """Return the values assigned to a name."""
    rules, expressions = unit.rules, unit.bindings_of(scope, name)
    if rules.has_tables and (table := unit.definitions.get(qualified)) and table.kind == TABLE:
        return [Value("object", unit.path, table.id)]
    if rules.has_namespaces:
        found = declared_or_given(q, unit, scope, [*expressions, *unit.stores.get(scope, {}).get(name, ())])
    else:
        several = [q.values(unit, scope, one) for one in dict.fromkeys(expressions[:MOST_VALUES])]
        found = [value for values in several for value in values]
        for at, one in unit.filled.get(scope, {}).get(name, ())[:MOST_VALUES]:
            found += q.values(unit, at, one)
        if rules.has_prototypes and len(several) > _MOST_MEANINGS:
            differing = {values for values in several if any(value.kind not in _HOLDING for value in values)}
            if len(differing) > _MOST_MEANINGS:
                return []  # different variables in separate blocks
    inside = unit.children.get(qualified)
    if not inside or rules.separates_kinds or not rules.has_class_scope:
        return found
    functions = q.all_defined(unit, [one for some in inside.values() for one in some], Resolution.SCOPE)
    held = [held for value in found for held in ([value] if value.kind == "record" else value.held)]
    others = [value for value in found if value.kind not in _HOLDING]
    return [Value("literal", unit.path, qualified, Resolution.SCOPE, distinct([*functions, *held])), *others]


def name_or_call(q: Queries, unit: Unit, scope: str, name: str) -> Sequence[Value]:
    """Return the values of a variable or parameter, or else of a call of the method with that name."""
    found = q.values(unit, scope, Name(name))
    if unit.bindings_of(scope, name) or unit.has_parameter(scope, name):
        return found
    return [value for one in found for value in (q.returned(one) if one.kind == "function" else [one])]


def function_named(unit: Unit, scope: str, name: str) -> list[Value]:
    """Return a function defined as an element of a collection."""
    has_tables = unit.rules.has_tables
    if has_tables and name in unit.definitions:
        return [Value("function", unit.path, name)]
    around = unit.definitions[scope].qualified if scope in unit.definitions else FILE
    inside = unit.children_of(around, name)
    return [Value("function", unit.path, one.id) for one in inside if one.kind == "method" or has_tables]


def _named_in(unit: Unit, around: str, name: str) -> Sequence[Definition]:
    """Return the definitions found by bare name: no methods of literals, and no names that differ between blocks."""
    rules = unit.rules
    if rules.has_marked_variables:
        definitions = unit.children_of(around, name.removeprefix("$"))
        return [one for one in definitions if is_marked(unit, one) == name.startswith("$")]
    definitions = unit.children_of(around, name)
    if not definitions or not (rules.has_companions or rules.has_prototypes):
        return definitions
    found = [one for one in definitions if one.id not in unit.hidden]
    if rules.has_companions:
        return found
    found = [one for one in found if one.kind != "method"]
    once = {"class"} if rules.has_overloads else {"class", "function"}
    return [] if len(found) > 1 and all(one.kind in once for one in found) else found


def defined(q: Queries, unit: Unit, definition: Definition, resolution: Resolution) -> Values:
    """Return the values of a definition where its name is used."""
    rules, kind, parent = unit.rules, definition.kind, definition.parent
    is_impl_block = kind == "impl" and (rules.has_impls or rules.has_protocols)
    if is_impl_block or (kind == "macro" and rules.hooks.macros is not None):
        return ()
    if kind == TABLE:
        return (Value("object", unit.path, definition.id, resolution),)
    if is_class(definition):
        first = unit.definitions[definition.qualified]  # the first part of a partial class
        is_part = rules.has_partial_classes and is_class(first)
        return (Value("class", unit.path, first.id if is_part else definition.id, resolution),)
    if kind in FUNCTIONS:
        function = Value("function", unit.path, definition.id, resolution)
        decorated = rules.hooks.decorated
        return (function, *decorated(q, unit, definition)) if decorated is not None else (function,)
    if kind == "type" and rules.separates_kinds and definition.returns:  # a function type
        return (external_object(definition.name, resolution),)
    inside = unit.bindings_of(definition.id, definition.name) if kind in {"type", "constant"} else ()
    found = q.each(unit, parent, (inside or unit.bindings_of(parent, definition.name))[:MOST_VALUES])
    if not found and definition.returns:
        found = q.typed(unit, parent, definition.returns, None)
    return tuple(found_by(found, resolution))


def of_itself(q: Queries, unit: Unit, scope: str, name: str) -> Sequence[Value] | None:
    """Resolve a name that refers to the enclosing class or object; None for any other name."""
    rules = unit.rules
    if (word := rules.hooks.self_reference) is not None and (found := word(q, unit, scope, name)) is not None:
        return found
    if name == "this":
        return _this(q, unit, scope)
    if name == "super":
        return _inherited_method(q, unit, scope) if rules.has_method_super else _super(q, unit, scope)
    if name in rules.self_names:
        owner = q.owner(unit, scope)
        return [owner] if owner else ()
    if name in rules.factories and rules.has_implicit_members and (cls := class_around(unit, scope)):
        return [Value("class", unit.path, cls.id)]
    return None


def _this(q: Queries, unit: Unit, scope: str) -> Sequence[Value]:
    """Return the values of `this`: from the language hook, or else the object of the enclosing class."""
    hook = unit.rules.hooks.this
    found = hook(q, unit, scope) if hook is not None else None
    return _object_around(q, unit, scope) if found is None else found


def _object_around(q: Queries, unit: Unit, scope: str) -> list[Value]:
    owner = q.owner(unit, scope)
    return [owner.as_kind("object")] if owner else []


def _super(q: Queries, unit: Unit, scope: str) -> Sequence[Value]:
    owner = q.owner(unit, scope)
    if owner is not None:
        return [owner.as_kind("object" if _is_in_enum_constant(unit, scope) else "parent")]
    bases = bases_of_unnamed(q, unit, unit.holder(scope)[0]) if unit.rules.has_prototypes else ()
    return [base.as_kind("object") for base in bases]


def _is_in_enum_constant(unit: Unit, scope: str) -> bool:
    """Return whether a method is defined in the body of an enum constant."""
    method = next(iter(unit.around(scope)), None)
    enum = unit.definitions.get(method.parent.rpartition(".")[0]) if method else None
    return method is not None and method.parent not in unit.definitions and enum is not None and enum.kind == "enum"


def _inherited_method(q: Queries, unit: Unit, scope: str) -> Sequence[Value]:
    """Return the method that the enclosing method overrides."""
    method, cls = function_around(unit, scope), class_around(unit, scope)
    if method is None or cls is None:
        return ()
    first, *others = ancestors(q, Value("class" if unit.rules.has_function_names else "object", unit.path, cls.id))
    found = members(q, first, others, method.name)
    return found or [one for host in derived_classes(q, first) for one in _next_method(q, host, first, method.name)]


def _next_method(q: Queries, host: Value, module: Value, name: str) -> Sequence[Value]:
    """Return the method that follows a module in the method resolution order of a class including it."""
    above = [*dropwhile(lambda one: not one.is_same(module), ancestors(q, host))]
    return members(q, host, above[1:], name) if above else ()
