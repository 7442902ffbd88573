"""What gives a test its parameters: the fixtures of pytest."""

import posixpath
from collections.abc import Iterator

from docindex_dagster.graph.resolution.base import NameResolver
from docindex_dagster.graph.units import FILE, Definition, Unit
from docindex_dagster.graph.values import How, Kind, Value

_BESIDE = "conftest.py"


def fixture_of(resolver: NameResolver, unit: Unit, function: Definition, name: str) -> Value | None:
    """The function that gives a test or fixture a parameter: the nearest, in its class, file or folders."""
    is_given = unit.policy.has_fixtures and (function.name.startswith("test") or _is_fixture(unit, function))
    return next(_fixtures(resolver, unit, function, name), None) if is_given else None


def _fixtures(resolver: NameResolver, unit: Unit, function: Definition, name: str) -> Iterator[Value]:
    """The fixtures of a name that a function sees, the nearest first; one of its own name is given another."""
    for other, scope in _places(resolver, unit, function):
        for definition in other.children.get(scope, {}).get(name, ()):
            is_itself = (other.path, definition.id) == (unit.path, function.id)
            if not is_itself and _is_fixture(other, definition):
                yield Value(Kind.FUNCTION, other.path, definition.id, How.ARGUMENT)


def _places(resolver: NameResolver, unit: Unit, function: Definition) -> Iterator[tuple[Unit, str]]:
    yield from ((unit, around) for around in dict.fromkeys((function.parent, FILE)))
    folder = unit.path
    while folder:
        folder = posixpath.dirname(folder)
        path = posixpath.join(folder, _BESIDE)
        if path != unit.path and resolver.program.is_file(path):
            yield resolver.unit(path), FILE


def _is_fixture(unit: Unit, definition: Definition) -> bool:
    return any(value.removesuffix("()").rpartition(".")[2] == "fixture" for value in unit.decorated_by(definition.id))
