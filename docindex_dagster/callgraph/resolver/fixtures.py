"""What gives a test its parameters: the fixtures of pytest."""

import posixpath
from collections.abc import Iterator

from docindex_dagster.callgraph.ir import FILE, Definition
from docindex_dagster.callgraph.offers import last_name
from docindex_dagster.callgraph.resolver.queries import Queries
from docindex_dagster.callgraph.resolver.values import Resolution, Value
from docindex_dagster.callgraph.units import Unit

_BESIDE = "conftest.py"


def fixture_of(q: Queries, unit: Unit, function: Definition, name: str) -> Value | None:
    """The function that gives a test or fixture a parameter: the nearest, in its class, file or folders.

    One that has the name of its own parameter is given another.
    """
    if unit.rules.has_fixtures and (function.name.startswith("test") or _is_fixture(unit, function)):
        for other, scope in _places(q, unit, function):
            for one in other.children_of(scope, name):
                if _is_fixture(other, one) and (other.path, one.id) != (unit.path, function.id):
                    return Value("function", other.path, one.id, Resolution.ARGUMENT)
    return None


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
