"""Classes without a member of a given name are skipped without resolving anything."""

import pyarrow.compute as pc
import pytest

from docindex_dagster.callgraph.resolver import classes
from tests.graph.samples import graph_of

MODULES = 50
NAMES = 40


@pytest.fixture
def fields_asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the names that are looked up in the fields of classes."""
    asked: list[str] = []
    fields = classes._fields

    def noted(q, owner, unit, definition, name):
        asked.append(name)
        return fields(q, owner, unit, definition, name)

    monkeypatch.setattr(classes, "_fields", noted)
    return asked


def test_a_name_that_no_ancestor_has_is_asked_of_none(fields_asked: list[str]):
    modules = "".join(f"module M{n}\n  def m{n}\n  end\nend\n\n" for n in range(MODULES))
    includes = "".join(f"  include M{n}\n" for n in range(MODULES))
    calls = "".join(f"    unknown_{n}\n" for n in range(NAMES))
    files = {"lib/m.rb": modules, "lib/a.rb": f"class A\n{includes}\n  def run\n{calls}    m7\n  end\nend\n"}

    graph = graph_of(files)

    found = graph.triples.filter(pc.equal(graph.triples["predicate"], "calls"))["object"].to_pylist()
    assert "lib/m.rb::M7.m7" in found
    assert len([name for name in fields_asked if name.startswith("unknown")]) == 0


def test_what_is_written_in_a_literal_beside_a_class_is_found_in_it():
    files = {"a.js": "class A {}\nA.table = { go() {} }\nA.table.go()\n"}

    calls = graph_of(files).triples.filter(pc.field("predicate") == "calls")["object"].to_pylist()

    assert calls == ["a.js::A.table.go"]
