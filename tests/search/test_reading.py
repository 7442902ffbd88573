"""Searches of memory-mapped texts and of tables equal a plain scan of every row."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from docindex_dagster.core.errors import QueryError
from docindex_dagster.core.layout import Layout
from docindex_dagster.search import text_scan
from docindex_dagster.search.cancellation import cancel_when
from docindex_dagster.search.candidates import Pool
from docindex_dagster.search.filters import Filters
from docindex_dagster.search.lookup import rows_at
from docindex_dagster.search.matches import Matches, find_matches, pieces_of
from docindex_dagster.search.text_scan import Pattern, escape_regex, find_matching_chunks, longest_literal
from docindex_dagster.stores import row_files
from docindex_dagster.stores.reader import Reader, open_reader
from tests.conftest import publish_rows, vectors_of
from tests.graph.samples import chunks_of

A, B = "library/a", "library/b"
LONG = "value = [" + ", ".join(f"'item {number}'" for number in range(2000)) + "]\n"
FILES = {
    "lib/arrows.py": "def first(a):\n    return a ->> a  # ->> twice\n\n\ndef second():\n    return 'Größe ->>'\n",
    "lib/long.py": f"# one line that is longer than any chunk\n{LONG}",
    "tests/test_arrows.py": "def test_first():\n    assert first(1) ->> 1\n",
    "docs/guide.md": "# Guide\n\n" + "".join(f"Sentence {n} of the guide says ->> a little.\n" for n in range(200)),
    "docs/page.html": "<html><body><h1>Title</h1><p>first a &gt; b and ->> c</p></body></html>\n",
    "docs/page.rst": "Title\n=====\n\n.. note:: first ->> of\n\n    all\n\nText of it.\n",
    "docs/windows.txt": "one\r\ntwo ->> three\r\nreturn\r\n",
    "empty.py": "\n",
}
EDITED = FILES | {"lib/arrows.py": FILES["lib/arrows.py"] + "\n\ndef third():\n    return '\x00 é漢🙂'\n"}
OTHERS = {"lib/arrows.py": "def first():\n    return 3\n", "zone.js": "function first() { return [0]; }\r\n"}


def publish_files(layout: Layout, key: str, files: dict[str, str]) -> None:
    chunks = chunks_of(files, key)
    publish_rows(layout, key, chunks, vectors_of(chunks))


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """Publish two sources and edit one of them, so that its texts span several files. Set small scan batches."""
    layout = Layout(tmp_path_factory.mktemp("index"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_files, "_SMALL", 0)
        for key, files in ((A, FILES), (A, EDITED), (B, OTHERS)):
            publish_files(layout, key, files)
        opened = open_reader(layout)
        assert len(opened.generation.sources[A].rows) == 2
        assert any(file is None for file in opened.parts.files.values())
        assert sum(file is not None for file in opened.parts.files.values()) > 3
        patch.setattr(text_scan, "_ROWS", 3)
        yield opened


@pytest.fixture(scope="module")
def of_tables(reader: Reader) -> Reader:
    """Return the same reader without its row files."""
    without = {key: replace(source, rows=()) for key, source in reader.generation.sources.items()}
    return replace(reader, generation=replace(reader.generation, sources=without))


def meeting(reader: Reader, filters: Filters) -> pa.Table:
    rows = reader.table.search().limit(None).to_arrow()
    return rows.filter(pa.array(filters.to_mask(rows)))


def plainly(reader: Reader, filters: Filters, pattern: Pattern) -> list[tuple[str, float]]:
    """Return the chunks that match a pattern, by scanning all rows."""
    rows = meeting(reader, filters)
    texts = rows["text"].combine_chunks()
    if "$" in pattern.text and pattern.is_regex:
        texts = pc.replace_substring(texts, "\r\n", "\n")
    count = pc.count_substring_regex if pattern.is_regex else pc.count_substring
    counts = count(texts, f"(?m){pattern.text}" if pattern.is_regex else pattern.text).to_pylist()
    found = [
        (row["source_type"] == "test", row["path"], row["chunk_index"], row["chunk_id"], float(number))
        for row, number in zip(rows.to_pylist(), counts, strict=True)
        if number
    ]
    return [(one[-2], one[-1]) for one in sorted(found)]


def all_places(reader: Reader, filters: Filters, pattern: Pattern) -> list[tuple[str, str, int, int]]:
    """Return the matches in each file with a chunk that matches, or that is cut or converted, by reading the files."""
    holding_it = {one for one, _ in plainly(reader, filters, pattern)}
    rows = meeting(reader, filters).to_pylist()
    found = set()
    for source, path in {(row["source"], row["path"]) for row in rows}:
        held = [row for row in rows_at(reader, path) if row["source"] == source]
        of_file = [row for row in rows if (row["source"], row["path"]) == (source, path)]
        is_other = any(row["end_byte"] is None or not _is_span(row) for row in of_file)
        last = max((row["end_byte"] or 0) for row in of_file)
        is_cut = any(not row["text"].endswith("\n") and (row["end_byte"] or last) < last for row in of_file)
        if is_other or is_cut or any(row["chunk_id"] in holding_it for row in of_file):
            for first, text in pieces_of(held, lambda *_: None):
                starts = [start for start, _ in pattern.places(text)]
                lines = [(text.count("\n", 0, start), start - text.rfind("\n", 0, start)) for start in starts]
                found |= {(source, path, first + line, column) for line, column in lines}
    return sorted(found)


def _is_span(row: dict[str, Any]) -> bool:
    return bool(row["end_byte"] - row["start_byte"] == len(row["text"].encode()))


def places(found: Matches) -> list[tuple[str, str, int, int]]:
    return [(match.source, match.path, match.line, match.column) for match in found.matches]


_TEXTS = st.one_of(
    st.sampled_from(["->>", "return", "first", "e", "item 19", "\r\n", "Größe", "\x00", "🙂", "[0]", "nowhere", ")\n"]),
    st.text(alphabet="item 0123,'->\nretufs\r", min_size=1, max_size=5),
)
_CHOSEN = (
    *(r"\bdef \w+", "^return", r"first\(", r"(?i)GRÖßE|ITEM 7\b", "->> .$", r"\w+$", r"[a-z]{5,}\d", r"^\s*#"),
    *(
        r"\Aone",
        r"\Avalue",
        r"three\z",
        r"item \d+', 'item",
        r"\):\n +return",
        r"(return|first).*",
        r"\S+>>",
        r"fir?st|x",
    ),
    *(r"de\C", "e+?", "(?s)first.*return", r"^def .*$", r"\x00", r"\Qfirst(\E", r"[^a]\]", "p<", "three\r\n"),
)
_REGEXES = st.one_of(
    st.sampled_from(_CHOSEN),
    st.text(alphabet="firsteun()[]|?*+.^$\\{1,}dwQE- >", min_size=1, max_size=9),
)
_FILTERS = st.sampled_from(
    [
        Filters(),
        Filters(sources=(B,)),
        Filters(source_types=("test",)),
        Filters(languages=("python", "text")),
        Filters(path_glob="lib/**"),
        Filters(paths=("docs/guide.md", "zone.js")),
        Filters(places=((A, "docs"), (B, "*.js"))),
        Filters(symbol_kinds=("function",)),
    ]
)
_PATTERNS = st.one_of(
    _TEXTS.map(lambda text: Pattern(text, is_regex=False)), _REGEXES.map(lambda text: Pattern(text, is_regex=True))
)


@given(pattern=_PATTERNS, filters=_FILTERS, limit=st.sampled_from([1, 2, 7, 500]))
@settings(max_examples=120)
def test_the_first_chunks_and_counts_are_those_of_a_plain_reading(reader, of_tables, pattern, filters, limit):
    if not is_pattern(pattern):
        return
    expected = plainly(reader, filters, pattern)[:limit]
    assert find_matching_chunks(Pool(reader, filters, limit), pattern) == expected
    assert find_matching_chunks(Pool(of_tables, filters, limit), pattern) == expected


@given(pattern=_PATTERNS, filters=_FILTERS, limit=st.sampled_from([0, 1, 5, 100]))
@settings(max_examples=60)
@example(pattern=Pattern("e", is_regex=False), filters=Filters(), limit=1)
@example(pattern=Pattern(r"\w+$", is_regex=True), filters=Filters(), limit=1)
@example(pattern=Pattern(r"\Avalue", is_regex=True), filters=Filters(), limit=0)
@example(pattern=Pattern(r"^\s*\w", is_regex=True), filters=Filters(), limit=1)
@example(pattern=Pattern(r"\):\n +return", is_regex=True), filters=Filters(), limit=1)
def test_all_places_are_found_and_counted_as_by_a_plain_reading(reader, of_tables, pattern, filters, limit):
    if not is_pattern(pattern) or (pattern.is_regex and r"\C" in pattern.text):
        return
    expected = [] if filters.symbol_kinds else all_places(reader, filters, pattern)
    for searched in (reader, of_tables):
        found = find_matches(Pool(searched, filters, limit), pattern)
        if not filters.symbol_kinds:
            assert places(found) == expected[: limit or None]
            assert (found.total, found.files) == (len(expected), len({place[:2] for place in expected}))
    assert find_matches(Pool(reader, filters, limit), pattern) == find_matches(Pool(of_tables, filters, limit), pattern)


def is_pattern(pattern: Pattern) -> bool:
    try:
        pattern.check()
    except QueryError:
        return False
    return True


def test_the_rest_is_not_read_where_what_is_first_is_found(reader, monkeypatch):
    looked = []
    real = Pattern.matches

    def matches(self, texts):
        looked.append(len(texts))
        return real(self, texts)

    monkeypatch.setattr(Pattern, "matches", matches)
    assert len(find_matching_chunks(Pool(reader, Filters(), 1), Pattern("e", is_regex=False))) == 1
    assert sum(looked) < reader.searcher.num_docs / 2


def test_the_table_is_not_opened_where_there_are_texts(reader, monkeypatch):
    fresh = open_reader(reader.layout)
    monkeypatch.setattr("docindex_dagster.stores.lance_table.open_for_reading", lambda *_: pytest.fail("it is opened"))
    pool = Pool(fresh, Filters(), 10)
    assert find_matching_chunks(pool, Pattern("->>", is_regex=False))
    assert find_matches(pool, Pattern("->>", is_regex=False)).total


@pytest.mark.parametrize("search", [find_matching_chunks, find_matches])
def test_it_ends_once_nobody_waits(reader, search):
    with cancel_when(lambda: True), pytest.raises(QueryError, match="was cancelled"):
        search(Pool(reader, Filters(), 10), Pattern("->>", is_regex=False))


@given(st.text(max_size=6), st.text(max_size=30))
@example("\x00\\E\n$", "a\x00\\E\n$")
@example("x" * 1500, "y" + "x" * 1500)
def test_a_text_as_a_pattern_matches_itself_alone(text, other):
    found = pc.match_substring_regex(pa.array([other, other + text + other]), escape_regex(text)).to_pylist()
    assert found == [text in other, True]


@given(st.text(alphabet="abQE()[]|?*+.^$\\{1,}:i<>P-\n", max_size=12), st.text(alphabet="abQE()[1{\n", max_size=12))
@example("ab{2}c", "abbc")
@example("abc?d", "abd")
@example(r"(\Q(\E)a?b", "(b")
@example("(?i)ab", "AB")
@example("a|b", "b")
@example("[[:alpha:]a]ab", "bab")
def test_what_is_necessary_is_in_all_that_matches(regex, text):
    if is_pattern(Pattern(regex, is_regex=True)):
        is_match = pc.match_substring_regex(pa.array([text]), f"(?m){regex}")[0].as_py()
        assert not is_match or longest_literal(regex) in text


@pytest.mark.parametrize(
    ("regex", "text"),
    [
        *((r"\bdef \w+", "def "), (r"raise \w+Error\(", "raise "), ("colou?r", "colo"), ("https?://", "http")),
        *((r"a\.b+c", "a.b"), ("(?i)license", ""), ("one|other", ""), (r"\d+", ""), ("(get|set)Name", "Name")),
        (r"\Qx\E", ""),
    ],
)
def test_the_longest_text_of_a_pattern_is_looked_for_first(regex, text):
    assert longest_literal(regex) == text
