"""What gives a test its parameters: the fixtures of pytest."""

import posixpath
from collections.abc import Iterator

from docindex_dagster.callgraph.ir import FILE, Definition
from docindex_dagster.callgraph.offers import last_name
from docindex_dagster.callgraph.resolver.queries import Queries
from docindex_dagster.callgraph.resolver.values import How, Value
from docindex_dagster.callgraph.units import Unit

_BESIDE = "conftest.py"


def fixture_of(q: Queries, unit: Unit, function: Definition, name: str) -> Value | None:
    """The function that gives a test or fixture a parameter: the nearest, in its class, file or folders."""
    is_given = unit.rules.has_fixtures and (function.name.startswith("test") or _is_fixture(unit, function))
    return next(_fixtures(q, unit, function, name), None) if is_given else None


def _fixtures(q: Queries, unit: Unit, function: Definition, name: str) -> Iterator[Value]:
    """The fixtures of a name that a function sees, the nearest first; one of its own name is given another."""
    for other, scope in _places(q, unit, function):
        for definition in other.children_of(scope, name):
            is_itself = (other.path, definition.id) == (unit.path, function.id)
            if not is_itself and _is_fixture(other, definition):
                yield Value("function", other.path, definition.id, How.ARGUMENT)


def _places(q: Queries, unit: Unit, function: Definition) -> Iterator[tuple[Unit, str]]:
    yield from ((unit, around) for around in dict.fromkeys((function.parent, FILE)))
    folder = unit.path
    while folder:
        folder = posixpath.dirname(folder)
        path = posixpath.join(folder, _BESIDE)
        if path != unit.path and q.program.is_file(path):
            yield q.unit(path), FILE


def _is_fixture(unit: Unit, definition: Definition) -> bool:
    return any(last_name(value) == "fixture" for value in unit.decorated_by(definition.id))
