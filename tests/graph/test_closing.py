"""A build's objects are freed when it ends, without a garbage collection of cycles."""

import gc
import weakref
from pathlib import Path

import pytest

from docindex_dagster.callgraph.resolver.resolver import resolver as resolver_of
from tests.graph.built import build_graph
from tests.graph.calls import PROGRAMS, chunks_of


def test_the_program_of_a_build_is_freed_when_it_ends(monkeypatch: pytest.MonkeyPatch):
    programs: list[weakref.ref[object]] = []
    units: list[weakref.ref[object]] = []

    def noted(*arguments):
        resolver = resolver_of(*arguments)
        programs.append(weakref.ref(resolver.program))
        units.extend(map(weakref.ref, resolver.program.units.units.values()))
        return resolver

    monkeypatch.setattr("docindex_dagster.graph.build.resolver_of", noted)
    chunks = chunks_of(Path(PROGRAMS / "python"))
    gc.collect()
    gc.disable()
    try:
        build_graph(chunks)
        assert programs
        assert not [program for program in programs if program() is not None]
        assert units
        assert not [unit for unit in units if unit() is not None]
    finally:
        gc.enable()
