import pytest
from hypothesis import given
from hypothesis import strategies as st

from docindex_dagster.chunking.build import build_chunks
from docindex_dagster.chunking.inputs import gather
from docindex_dagster.chunking.packing import chunk_lines
from docindex_dagster.core.settings import ChunkingSettings
from docindex_dagster.sources.discovery import discover
from docindex_dagster.sources.model import Source

TEXTS = st.text(st.sampled_from("ab é漢😀\t\r\n\n{}"), max_size=200)


def dense(text: str) -> int:
    return len("".join(text.split()))


@given(TEXTS, st.integers(1, 40))
def test_chunks_put_end_to_end_are_the_text(text, budget):
    chunks = chunk_lines(text, budget)
    assert "".join(chunk.text for chunk in chunks) == (text if text.strip() else "")


@given(TEXTS, st.integers(1, 40))
def test_no_chunk_exceeds_the_budget_or_is_blank(text, budget):
    assert all(0 < dense(chunk.text) <= budget for chunk in chunk_lines(text, budget))


@given(TEXTS, st.integers(1, 40))
def test_bytes_and_lines_are_those_of_the_text(text, budget):
    data = text.encode()
    for chunk in chunk_lines(text, budget):
        assert data[chunk.start_byte : chunk.end_byte].decode() == chunk.text
        assert chunk.start_line == data.count(b"\n", 0, chunk.start_byte) + 1
        assert chunk.end_line == data.count(b"\n", 0, chunk.end_byte - 1) + 1


@given(st.lists(st.text(st.sampled_from("ab é漢 "), max_size=10), max_size=30))
def test_lines_that_fit_are_never_cut(lines):
    for chunk in chunk_lines("\n".join(lines), 10)[:-1]:
        assert chunk.text.endswith("\n")


def test_chunks_are_about_equally_large():
    sizes = [dense(chunk.text) for chunk in chunk_lines("line\n" * 330, 1000)]
    assert sizes == [660, 660]


def test_line_longer_than_the_budget_is_cut_between_characters():
    assert [chunk.text for chunk in chunk_lines("漢字漢字漢\n", 2)] == ["漢字", "漢字", "漢\n"]


def test_empty_text_has_no_chunks():
    assert chunk_lines("", 10) == ()


LONG = 20_000


@pytest.mark.parametrize(
    ("name", "text", "whole_lines"),
    [
        (
            "logo.py",
            f'LOGO = "{"QUJD" * LONG}"\n\n\ndef logo():\n    return LOGO\n',
            ["def logo():", "    return LOGO"],
        ),
        ("font.ts", f"const font = '{'AAEC' * LONG}'\nexport default font\n", ["export default font"]),
        (
            "table.go",
            f"package a\n\nvar t = []byte{{{'0x1f,' * LONG}}}\n\nfunc At() byte {{}}\n",
            ["func At() byte {}"],
        ),
        (
            "report.sql",
            f"SELECT {'column_of_a_table, ' * 500}x FROM t;\n",
            [f"SELECT {'column_of_a_table, ' * 500}x FROM t;"],
        ),
        ("data.unknown.awk", f'BEGIN {{ s = "{"QUJD" * LONG}" }}\n/x/ {{ print s }}\n', ["/x/ { print s }"]),
        ("names.py", f"NAMES = '{'漢字' * LONG}'\nx = 1\n", [f"NAMES = '{'漢字' * LONG}'", "x = 1"]),
    ],
)
def test_the_unreadable_end_of_a_long_line_is_left_out_and_all_other_lines_stay(tmp_path, name, text, whole_lines):
    (tmp_path / name).write_text(text)
    source = Source("library/x", "library", "x", tmp_path)
    settings = ChunkingSettings()

    texts = build_chunks(source, gather(discover(source), settings), None, settings).table["text"].to_pylist()

    assert len("".join(texts)) < len(text) or "".join(texts) == text
    assert len("".join(texts)) < 3100 + sum(map(len, whole_lines))  # the first and the last part of the long line
    assert all(line in "".join(texts).split("\n") for line in whole_lines)
    assert "".join(texts).startswith(text[:5])
