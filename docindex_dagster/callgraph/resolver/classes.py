"""Member lookup in classes: methods and fields, declared and inherited."""

from collections.abc import Iterable, Iterator, Sequence

from docindex_dagster.callgraph import ir
from docindex_dagster.callgraph.ir import Definition
from docindex_dagster.callgraph.nesting import is_class
from docindex_dagster.callgraph.resolver import builtins, header_visibility
from docindex_dagster.callgraph.resolver.hierarchy import parts_of
from docindex_dagster.callgraph.resolver.queries import MOST_CALLERS, Part, Queries, argument_at
from docindex_dagster.callgraph.resolver.types import held_by, is_open
from docindex_dagster.callgraph.resolver.values import (
    MOST_VALUES,
    Resolution,
    Value,
    Values,
    distinct,
    external,
    found_by,
    functions,
    is_known,
)
from docindex_dagster.callgraph.rules import Rules
from docindex_dagster.callgraph.units import Unit


def members(q: Queries, owner: Value, ancestors: Iterable[Value], name: str) -> list[Value]:
    """Return the members with a name from the first ancestor that has any."""
    outside = None
    for ancestor in ancestors:
        if ancestor.kind == "external":
            outside = outside or ancestor
        elif found := own_member(q, owner, ancestor, name):
            return found_by(found, Resolution.RECEIVER if ancestor.is_same(owner) else Resolution.INHERITED)
    rules = q.rules(owner)
    if name in rules.identity_methods and owner.kind == "object":
        return [external(f"{builtins.ANY}.{name}", Resolution.RECEIVER, (owner,))]
    if outside is None:
        return []
    held = rules.hooks.block_arguments(q, owner, name) if rules.hooks.block_arguments is not None else ()
    return [external(f"{outside.name}.{name}", Resolution.INHERITED, held)]


def own_member(q: Queries, owner: Value, cls: Value, name: str) -> list[Value]:
    """Return the members of a class itself, without inherited ones."""
    if cls.kind in {"literal", "record"}:
        return [*q.member(cls, name)]
    parts = parts_of(q, cls)
    required: list[Value] = []
    if parts and lacks(q, owner, cls, parts, name):
        return _applied_by_default(owner, cls, parts, name)
    for unit, definition in _companions(owner, cls, parts):
        found = _in_part(q, owner, cls, (unit, definition), name)
        if found and unit.rules.has_extensions:
            requirements = [one for one in functions(found) if one.name in q.unit(one.path).hidden]  # of a protocol
            provided = [one for one in found if one not in requirements]
            found = (requirements if owner.is_same(cls) else provided) or ([] if requirements else provided)
            required = required or requirements
        if found:
            return found
    return required or _applied_by_default(owner, cls, parts, name)


def _in_part(q: Queries, owner: Value, cls: Value, part: Part, name: str) -> list[Value]:
    """Return the members with a name in one part of a class."""
    unit, definition = part
    rules = unit.rules
    if rules.has_named_constructors and name == definition.name:
        return [cls.as_kind("class")]
    found: list[Value] = []
    is_seen = unit.path == cls.path or rules.has_partial_classes or rules.has_impls
    if is_seen and _may_have(owner, rules, is_field=False):
        for member in children(q, unit, definition, name):
            found += as_member(q, owner, *member)
    is_field = name.startswith("$") or _may_have(owner, rules, is_field=True)
    if is_field and (not found or (rules.separates_kinds and unit.bindings_of(definition.id, name))):
        found += _fields(q, owner, unit, definition, name)
    is_importing = rules.has_module_paths or rules.has_path_imports
    if not found and is_importing and definition.kind in {"module", "macro"}:
        return [*q.locally_imported(unit, definition.id, name)]
    return found


def _applied_by_default(owner: Value, cls: Value, parts: Sequence[Part], name: str) -> list[Value]:
    """Return the class for an implicit `apply`: its companion object creates an instance."""
    if name != "apply" or not owner.is_same(cls) or not any(unit.rules.has_companions for unit, _ in parts):
        return []
    return [cls.as_kind("class")] if {_is_single(*part) for part in parts} == {True, False} else []


def _companions(owner: Value, cls: Value, parts: Sequence[Part]) -> Sequence[Part]:
    """Return the parts (class or companion object) that provide the members of an owner, in lookup order."""
    if not any(unit.rules.has_companions for unit, _ in parts[:1]):
        return parts
    singles = [part for part in parts if _is_single(*part)]
    others = [part for part in parts if not _is_single(*part)]
    if not owner.is_same(cls):
        return others or singles
    if owner.kind == "class":
        return singles + [part for part in others if part[1].kind in {"enum", "impl", "module"}]
    return singles + others if _is_single(*parts[0]) else others + singles


def _is_single(unit: Unit, definition: ir.Definition) -> bool:
    """Return whether a class is a singleton object with its own name."""
    return definition.id in unit.properties


def apply_targets(q: Queries, value: Value) -> Values:
    """Return the code that runs when a class, or the object with its name, is called by name."""
    found = tuple(functions(own_member(q, value, value, "apply")))
    is_constructible = any(not _is_single(*part) for part in parts_of(q, value))
    return (*found, value) if is_constructible or not found else found


def _may_have(owner: Value, rules: Rules, *, is_field: bool) -> bool:
    """Return whether a value may have fields or functions; with function names, objects have fields, modules do not."""
    return not rules.has_function_names or (owner.kind == "object") == is_field


def children(q: Queries, unit: Unit, definition: ir.Definition, name: str) -> Iterator[Part]:
    """Yield the members of a class with a name."""
    rules = unit.rules
    own = unit.children_of(members_of(definition, rules), name)
    for member in [one for one in own if not _is_implementing(definition, one, rules)] or own:  # else a callback
        if not rules.has_companions or _holder(unit, member) == definition.id:
            yield unit, member
    if not rules.has_open_classes:
        return
    full = unit.full_name(definition.qualified)
    for path, member in q.program.full.get(rules.family, f"{full}.{name}"):
        if path != unit.path and member.parent and not _is_implementing(definition, member, rules):
            other = q.unit(path)
            if rules.sharing != "folder" or path.rpartition("/")[0] == unit.path.rpartition("/")[0]:
                yield other, member


def _holder(unit: Unit, member: ir.Definition) -> str:
    """Return the id of the class that contains a member, among classes with the same name: the last one before it."""
    others = [one.id for one in unit.same_named(member.parent) if is_class(one) and one.line <= member.line]
    return others[-1] if others else member.parent


def _is_implementing(definition: ir.Definition, member: ir.Definition, rules: Rules) -> bool:
    """Return whether a function of a module implements a protocol or is only declared."""
    return rules.has_protocols and definition.kind == "module" and member.kind == "method"


def as_member(q: Queries, owner: Value, unit: Unit, member: ir.Definition) -> Iterator[Value]:
    """Yield the values of a definition as a member of an object; a property has the values it returns."""
    is_held = owner.kind in {"object", "class"}
    is_object = unit.rules.has_namespaces or not unit.rules.calls_classes
    held = (owner.as_kind("object") if is_object else owner,) if is_held else ()
    for value in q.defined(unit, member, Resolution.RECEIVER):
        if value.kind != "function":
            yield value
        elif _is_property(unit, member):
            yield from q.returned(value.holding(held))
        else:
            yield value.holding(held)


def _is_property(unit: Unit, member: ir.Definition) -> bool:
    return member.id in unit.properties


def _fields(q: Queries, owner: Value, unit: Unit, definition: ir.Definition, name: str) -> list[Value]:
    """Return the values of an attribute: declared, assigned in methods, and passed when objects are created."""
    rules = unit.rules
    found = _declared_fields(q, owner, unit, definition, name)
    assigned = unit.attributes.get(definition.qualified, {}).get(name, ())[:MOST_VALUES]
    if rules.separates_kinds:  # for attributes with a declared type, only functions matter
        assigned = assigned if all(map(_may_be_function, found)) else ()
    for scope, expression in assigned:
        found += q.all_defined(unit, unit.children_of(f"{scope}.this", name), Resolution.RECEIVER)
        values = q.values(unit, scope, expression)
        found += functions(values) if rules.separates_kinds else values
    found = _with_methods(unit, definition, name, found)
    return [*found, *_set_elsewhere(q, unit, definition, name, found)]


def _may_be_function(value: Value) -> bool:
    """Return whether a value of a declared type may be a function."""
    return value.kind == "external object" and not builtins.is_value(value.name)


def _declared_fields(q: Queries, owner: Value, unit: Unit, definition: ir.Definition, name: str) -> list[Value]:
    """Return the values of an attribute from the body of its class."""
    rules = unit.rules
    expressions = unit.bindings_of(definition.id, name) if is_class(definition) else ()
    if rules.has_namespaces:
        return declared_or_given(q, unit, definition.id, expressions)
    held = held_by(q, owner) if owner.held and rules.infers_fields else {}
    found: list[Value] = []
    for one in expressions[:MOST_VALUES]:
        written = one.type if held and isinstance(one, ir.Instance) else None
        found += q.typed(unit, definition.id, written, held) if written else q.values(unit, definition.id, one)
    return found


def declared_or_given(q: Queries, unit: Unit, scope: str, expressions: Sequence[ir.Expression]) -> list[Value]:
    """Return instances of the declared type if it is known, or else the assigned values too."""
    declared = [one for one in expressions if isinstance(one, ir.Instance)]
    found = q.each(unit, scope, declared[:MOST_VALUES])
    if any(map(is_known, found)):
        return found
    return found + q.each(unit, scope, [one for one in expressions if not isinstance(one, ir.Instance)][:MOST_VALUES])


def _set_elsewhere(
    q: Queries, unit: Unit, definition: ir.Definition, name: str, found: Sequence[Value]
) -> Iterator[Value]:
    """Yield the values that other code stores in an attribute, if the class alone does not determine them."""
    rules, cls = unit.rules, Value("class", unit.path, definition.id)
    names = [one.name for one in unit.parameters.get(definition.id, ())] if is_class(definition) else []
    if name in names and (not rules.separates_kinds or (rules.has_companions and all(map(_may_be_function, found)))):
        passed = q.passed_arguments(cls, names.index(name), name)
        yield from functions(passed) if rules.separates_kinds else passed
    if rules.has_pointers and unit.bindings_of(definition.id, name) and not any(map(is_known, found)):
        yield from header_visibility.assigned(q, cls, name)
    if rules.has_tables:
        yield from found_by(_assigned(q, unit, definition, name), Resolution.RECEIVER)
        return
    is_bound = bool(found) or (rules.has_untyped_fields and bool(unit.bindings_of(definition.id, name)))
    is_enough = any if rules.has_file_types else all  # a field may have a default in addition to its type
    if rules.infers_fields and is_bound and is_enough(is_open(q, value) for value in found):
        yield from _filled(q, unit, definition, name)
        yield from _assigned(q, unit, definition, name)


def _with_methods(unit: Unit, definition: ir.Definition, name: str, found: list[Value]) -> list[Value]:
    """Return the values of a field, merged with the functions defined in its literal."""
    literal = f"{definition.qualified}.{name}"
    if literal not in unit.children or literal in unit.definitions:
        return found
    others = [value for value in found if value.kind != "record"]
    return [Value("literal", unit.path, literal, Resolution.RECEIVER, distinct(found)), *others]


def _filled(q: Queries, unit: Unit, definition: ir.Definition, name: str) -> Iterator[Value]:
    """Yield the values of a field in initializers of a class."""
    cls, fields = Value("class", unit.path, definition.id), [*unit.bindings.get(definition.id, ())]
    position = fields.index(name) if name in fields else MOST_CALLERS
    for path, fill in q.program.fills.get(unit.rules.family, definition.name, MOST_CALLERS)[:MOST_CALLERS]:
        argument = argument_at(fill.arguments, position, name)
        if argument is not None and not isinstance(argument.value, ir.Unknown):
            other = q.unit(path)
            if any(value.is_same(cls) for value in q.type_names(other, fill.scope, fill.type)):
                yield from found_by(q.values(other, fill.scope, argument.value), Resolution.ARGUMENT)


def _assigned(q: Queries, unit: Unit, definition: ir.Definition, name: str) -> Iterator[Value]:
    """Yield the values that other code assigns to a field of a class."""
    cls, has_tables = Value("class", unit.path, definition.id), unit.rules.has_tables
    known = q.program.assigned.get(unit.rules.family, name, None if has_tables else MOST_CALLERS)
    if has_tables:
        known = sorted(known, key=lambda item: item[0] != unit.path)
    for path, one in known[:MOST_CALLERS]:
        other, target, value = q.unit(path), one.target, one.value
        while isinstance(target, ir.Element):
            target, value = target.of, ir.Collection((value,))
        receivers = q.values(other, one.scope, target.of) if isinstance(target, ir.Attribute) else ()
        if any(each.is_same(cls) for each in receivers):
            yield from found_by(
                q.values(other, one.scope, value), Resolution.SCOPE if has_tables else Resolution.ARGUMENT
            )


def lacks(q: Queries, owner: Value, cls: Value, parts: Sequence[Part], name: str) -> bool:
    """Return whether a class certainly has no member with a name; a quick check without queries."""
    unit, definition = parts[0]
    rules, key = unit.rules, (cls.path, cls.name)
    is_open = rules.has_impls or rules.has_module_paths or rules.has_path_imports or rules.has_tables
    if is_open or unit.path != cls.path or "." in name or (rules.infers_fields and owner.held):
        return False
    known = q.member_names.get(key)
    if known is None:
        known = q.member_names[key] = frozenset(name for part in parts for name in _names(*part))
    if name in known or not rules.has_open_classes:
        return name not in known
    return not q.program.full.has(rules.family, f"{unit.full_name(definition.qualified)}.{name}")


def members_of(definition: Definition, rules: Rules) -> str:
    """Return the parent name of the members of a class or constructor function, or its id if the name is not unique."""
    if rules.has_protocols:
        return definition.id
    return definition.qualified if is_class(definition) else f"{definition.qualified}.prototype"


def _names(unit: Unit, definition: Definition) -> Iterator[str]:
    """Yield the names of members, attributes and their literals in a part, and of the class if it is its own member."""
    yield from unit.children.get(members_of(definition, unit.rules), ())
    yield from unit.bindings.get(definition.id, ())
    yield from unit.attributes.get(definition.qualified, ())
    yield from unit.literals.get(definition.qualified, ())
    yield from unit.parameter_names(definition.id)
    if unit.rules.has_named_constructors:
        yield definition.name
