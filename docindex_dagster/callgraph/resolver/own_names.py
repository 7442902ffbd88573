"""The names that a class itself may have something under, so that most classes are passed over quickly.

Members are looked for in one class after the other, and most have none of the name: of fifty ancestors, one has it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from docindex_dagster.callgraph.ir import Definition
from docindex_dagster.callgraph.offers import full_name, is_class
from docindex_dagster.callgraph.rules import Rules
from docindex_dagster.callgraph.units import Unit


@dataclass(frozen=True, slots=True)
class OwnNames:
    """What the files of a class say of its names."""

    names: frozenset[str]
    is_complete: bool  # else what a class has under a name depends on more than its files
    asks_owner: bool  # what an object holds is looked at as well
    reopened: tuple[str, str] | None  # the family and full name under which other files may add members


def own_names(path: str, parts: Sequence[tuple[Unit, Definition]]) -> OwnNames:
    """The names of a class that is defined in the file of a path, from all of its parts."""
    unit, definition = parts[0]
    rules = unit.rules
    return OwnNames(
        names=frozenset(name for part in parts for name in _names(*part)),
        is_complete=unit.path == path
        and not (rules.has_impls or rules.has_module_paths or rules.has_path_imports or rules.has_tables),
        asks_owner=rules.has_filled_fields,
        reopened=(rules.family, full_name(unit, definition.qualified)) if rules.has_open_classes else None,
    )


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
