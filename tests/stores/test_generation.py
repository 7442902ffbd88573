"""Generation files: each is parsed once, and a changed file is never mistaken for its old version."""

import os
from dataclasses import replace

import pytest

from docindex_dagster.core.errors import StoreError
from docindex_dagster.stores import generation as module
from docindex_dagster.stores.generation import (
    Generation,
    GraphFiles,
    PublishedSource,
    read_generation,
    replace_generation,
    write_generation,
)
from tests.conftest import chunks_of, publish_rows, vectors_of

KEY = "library/sample"
SOURCE = PublishedSource(
    version="v1",
    revision="näm",
    graph=GraphFiles("nodes.parquet", "triples.parquet"),
    files=1,
    chunks=2,
    text_bytes=3,
    nodes=4,
    edges=5,
    languages={"python": 2},
    changed_at="2026-01-01T00:00:00+00:00",
)
FIRST = Generation(1, "model", "table", 1, "00000001", {KEY: SOURCE})


@pytest.fixture
def parsed():
    """Return a function that counts the files parsed since the test started."""
    module.parse_generation.cache_clear()
    return lambda: module.parse_generation.cache_info().misses


def test_what_is_written_is_read(layout):
    write_generation(layout, FIRST)

    assert read_generation(layout) == FIRST


def test_a_generation_is_parsed_once_however_often_it_is_read(layout, parsed):
    write_generation(layout, FIRST)

    found = [read_generation(layout) for _ in range(10)]

    assert parsed() == 1
    assert all(one is found[0] for one in found)


def test_a_generation_is_not_parsed_again_when_another_takes_its_place(layout):
    write_generation(layout, FIRST)
    before = read_generation(layout)

    write_generation(layout, replace(FIRST, number=2))

    assert read_generation(layout, previous=True) is before


def test_a_file_of_the_same_size_and_time_is_not_taken_for_the_one_before(layout):
    replace_generation(layout, FIRST)
    found, stamp = read_generation(layout), layout.current.stat()

    data = layout.current.read_bytes().replace(b'"v1"', b'"v2"')
    layout.current.write_bytes(data)  # keeps the inode
    os.utime(layout.current, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))

    assert layout.current.stat().st_size == stamp.st_size
    assert found.sources[KEY].version == "v1"
    assert read_generation(layout).sources[KEY].version == "v2"


def test_a_damaged_file_is_found_damaged_each_time_and_read_when_it_is_mended(layout):
    replace_generation(layout, FIRST)
    whole = layout.current.read_bytes()
    layout.current.write_bytes(whole[:-10])

    for _ in range(2):
        with pytest.raises(StoreError, match="is damaged"):
            read_generation(layout)
    layout.current.write_bytes(whole)

    assert read_generation(layout) == FIRST


@pytest.mark.parametrize(
    "outside",
    [
        replace(FIRST, table="../table"),
        replace(FIRST, tantivy="/etc"),
        replace(FIRST, tantivy=".."),
        replace(FIRST, previous="../../PREVIOUS"),
        replace(FIRST, sources={KEY: replace(SOURCE, graph=GraphFiles("../nodes.parquet", "triples.parquet"))}),
        replace(FIRST, sources={KEY: replace(SOURCE, rows=("rows/../../a",))}),
        replace(FIRST, sources={KEY: replace(SOURCE, pack="../pack")}),
    ],
)
def test_a_file_that_leads_out_of_the_stores_is_damaged(layout, outside):
    replace_generation(layout, outside)

    with pytest.raises(StoreError, match="is not a file name"):
        read_generation(layout)


def test_a_publication_parses_what_was_published_and_what_is_now(layout, parsed):
    publish(layout, "alpha")
    publish(layout, "beta")
    before = parsed()

    publish(layout, "gamma")

    assert parsed() - before == 1  # the last publication already parsed the other file


def publish(layout, name: str) -> None:
    chunks = chunks_of({"a.py": [f"{name} reads a file"]}, KEY)
    publish_rows(layout, KEY, chunks, vectors_of(chunks))
