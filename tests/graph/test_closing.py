"""What a build makes is freed when it ends, without a search for cycles of objects."""

import gc
import weakref
from pathlib import Path

import pytest

from docindex_dagster.graph import build
from tests.graph.built import build_graph
from tests.graph.calls import PROGRAMS, chunks_of


def test_the_program_of_a_build_is_freed_when_it_ends(monkeypatch: pytest.MonkeyPatch):
    programs: list[weakref.ref[object]] = []
    units: list[weakref.ref[object]] = []
    make = build._resolver

    def noted(*arguments, **named):
        resolver = make(*arguments, **named)
        programs.append(weakref.ref(resolver.program))
        units.extend(map(weakref.ref, resolver.program.units.units.values()))
        return resolver

    monkeypatch.setattr(build, "_resolver", noted)
    chunks = chunks_of(Path(PROGRAMS / "python"))
    gc.collect()
    gc.disable()
    try:
        build_graph(chunks)
        (program,) = programs
        assert program() is None
        assert units
        assert not [unit for unit in units if unit() is not None]
    finally:
        gc.enable()
