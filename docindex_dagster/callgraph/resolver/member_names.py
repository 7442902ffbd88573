"""The names that a class itself may have something under, so that most classes are passed over quickly.

Members are looked for in one class after the other, and most have none of the name: of fifty ancestors, one has it.
"""

from collections.abc import Iterator, Sequence

from docindex_dagster.callgraph.ir import Definition
from docindex_dagster.callgraph.offers import full_name, is_class
from docindex_dagster.callgraph.resolver.queries import Part, Queries
from docindex_dagster.callgraph.resolver.values import Value
from docindex_dagster.callgraph.rules import Rules
from docindex_dagster.callgraph.units import Unit


def lacks(q: Queries, owner: Value, cls: Value, parts: Sequence[Part], name: str) -> bool:
    """Whether it is plain, without following anything, that a class itself has nothing under a name."""
    unit, definition = parts[0]
    rules, key = unit.rules, (cls.path, cls.name)
    is_open = rules.has_impls or rules.has_module_paths or rules.has_path_imports or rules.has_tables
    if is_open or unit.path != cls.path or "." in name or (rules.has_filled_fields and owner.held):
        return False
    known = q.member_names.get(key)
    if known is None:
        known = q.member_names[key] = frozenset(name for part in parts for name in _names(*part))
    if name in known or not rules.has_open_classes:
        return name not in known
    return not q.program.full.has(rules.family, f"{full_name(unit, definition.qualified)}.{name}")


def members_of(definition: Definition, rules: Rules) -> str:
    """The name around the members of a class or of a function that is one, or its id where several have that."""
    if rules.has_protocols:
        return definition.id
    return definition.qualified if is_class(definition) else f"{definition.qualified}.prototype"


def _names(unit: Unit, definition: Definition) -> Iterator[str]:
    """Members and attributes of a part, what is written in them, and the class itself where that is a member."""
    yield from unit.children.get(members_of(definition, unit.rules), ())
    yield from unit.bindings.get(definition.id, ())
    yield from unit.attributes.get(definition.qualified, ())
    yield from unit.literals.get(definition.qualified, ())
    yield from unit.taken(definition.id)
    if unit.rules.is_made_by_name:
        yield definition.name
