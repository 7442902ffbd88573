"""Answers that a client may name for a question: indexed locations of a single source."""

import pytest

from docindex_dagster.core.errors import QueryError
from docindex_dagster.evaluation.collected_questions import target_named
from docindex_dagster.evaluation.questions import Target
from docindex_dagster.search.lookup import find_chunks


@pytest.mark.parametrize(
    ("reference", "lines"),
    [
        ("src/pump.py", None),
        ("src/pump.py:2", (2, 2)),
        ("src/pump.py:1-2", (1, 2)),
        ("git/station::src/pump.py::0", (1, 3)),
    ],
)
def test_it_is_a_file_lines_of_it_or_a_chunk(reader, reference, lines):
    assert target_named(reader, reference, ()) == Target("git/station", "src/pump.py", lines)


def test_a_chunk_has_an_id(reader):
    (row,) = find_chunks(reader, "src/pump.py")

    assert target_named(reader, row["chunk_id"], ()) == Target("git/station", "src/pump.py", (1, 3))


@pytest.mark.parametrize(
    ("reference", "sources", "message"),
    [
        ("src/nowhere.py:1", (), "no indexed chunk is named"),
        ("src/pump.py:900", (), "the last indexed line is"),
        ("src/pump.py", ("library/manual",), "no indexed chunk is named"),
        ("0" * 32, (), "no indexed chunk is named"),
        ("\0", (), "no indexed chunk is named"),
    ],
)
def test_what_is_not_indexed_answers_nothing(reader, reference, sources, message):
    with pytest.raises(QueryError, match=message):
        target_named(reader, reference, sources)


def test_a_commit_answers_nothing(reader):
    revision = reader.generation.sources["git/station"].revision

    with pytest.raises(QueryError, match="a commit cannot answer a question"):
        target_named(reader, revision[:10], ())
