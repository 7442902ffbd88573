"""Full scans of texts for exact strings and patterns."""

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from docindex_dagster.core.errors import QueryError
from docindex_dagster.core.layout import Layout
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.search.candidates import Pool
from docindex_dagster.search.engine import search
from docindex_dagster.search.filters import Filters
from docindex_dagster.search.model import Hit, Mode
from docindex_dagster.search.text_scan import Pattern, find_matching_chunks
from docindex_dagster.stores.reader import Reader, open_reader
from tests.conftest import chunks_of, publish_rows, vectors_of

FILES = {
    "lib/arrows.py": ["first a ->> b\n  c ->> d", "second says nothing of it"],
    "lib/money.py": ["price is 5 $ (net)", "Größe = 'weiß' ->> ok"],
    "tests/test_arrows.py": ["test a ->> b"],
}


@pytest.fixture(scope="module")
def reader(tmp_path_factory) -> Reader:
    layout = Layout(tmp_path_factory.mktemp("index"))
    chunks = chunks_of(FILES)
    publish_rows(layout, "library/sample", chunks, vectors_of(chunks))
    return open_reader(layout)


def find(reader: Reader, query: str, mode: Mode) -> list[Hit]:
    return search(reader, query, StaticEmbedder, mode=mode)


def texts(hits: list[Hit]) -> set[str]:
    return {hit.text.split()[0] for hit in hits}


@pytest.mark.parametrize(
    ("query", "found"),
    [("->>", {"first", "Größe", "test"}), ("5 $ (net)", {"price"}), ("weiß", {"Größe"}), ("a ->>  b", set())],
)
def test_literal_finds_the_string_as_it_is(reader, query, found):
    assert texts(find(reader, query, Mode.LITERAL)) == found


@pytest.mark.parametrize(
    ("query", "found"),
    [(r"^\s*c ->", {"first"}), (r"\d \$ \((net|gross)\)$", {"price"}), ("(?i)GRÖßE", {"Größe"}), ("^ok", set())],
)
def test_regex_finds_a_pattern_whose_anchors_are_of_lines(reader, query, found):
    assert texts(find(reader, query, Mode.REGEX)) == found


def test_what_matched_is_highlighted(reader):
    (hit,) = find(reader, "'wei.'", Mode.REGEX)

    assert [hit.snippet.text[start:end] for start, end in hit.snippet.highlights] == ["'weiß'"]


def test_occurrences_are_counted(reader):
    hit = next(hit for hit in find(reader, "->>", Mode.LITERAL) if hit.path == "lib/arrows.py")

    assert [(signal.name, signal.score) for signal in hit.signals if signal.rank] == [("literal", 2.0)]


@pytest.mark.parametrize("pattern", ["x(", "[", "(?P<n", r"\8", "a{2000}", "(?=ahead)"])
def test_what_is_no_pattern_is_refused_in_one_line_without_what_we_added(reader, pattern):
    with pytest.raises(QueryError, match="invalid RE2 pattern ") as refused:
        find(reader, pattern, Mode.REGEX)
    assert "\n" not in str(refused.value)
    assert "(?m)" not in str(refused.value)


@pytest.mark.parametrize("pattern", ["x*", "a|", "$"])
def test_a_pattern_that_fits_everywhere_is_refused(reader, pattern):
    with pytest.raises(QueryError, match="matches the empty string"):
        find(reader, pattern, Mode.REGEX)


def test_a_pattern_that_is_too_long_or_takes_too_long_is_refused(reader):
    with pytest.raises(QueryError, match="too long: expected at most 1,000 characters"):
        find(reader, "(.*)" * 4000 + "a", Mode.REGEX)
    with pytest.raises(QueryError, match="takes too long"):
        find_matching_chunks(Pool(reader, Filters(), 10), Pattern("a", is_regex=True), longest_s=-1)


@pytest.mark.parametrize("pattern", [r"\C$", r"\C", r"wei\C"])
def test_a_pattern_may_match_a_part_of_a_character(reader, pattern):
    assert find(reader, pattern, Mode.REGEX)


@given(line=st.text(), needle=st.text(min_size=1, max_size=3))
def test_a_literal_span_is_the_first_place_of_the_string(line, needle):
    (span,) = Pattern(needle, is_regex=False).spans([line])

    assert (span is None) == (needle not in line)
    assert span is None or line[slice(*span)] == needle


@given(before=st.text(alphabet="aäß漢🙂"), after=st.text(alphabet="aäß漢🙂"))
def test_spans_of_a_pattern_are_in_characters(before, after):
    (span,) = Pattern("x+", is_regex=True).spans([f"{before}xx{after}"])

    assert span == (len(before), len(before) + 2)


@given(st.text(alphabet="()[]|?*+.^$\\\\QEax-:<>P", max_size=12))
@example("[](]a")
@example("[^](]+(a)")
@example(r"\\Q(\\E(a)")
@example("[[:alpha:](](a)")
@example("(?P<docindex_span>a)|(?P<n>x)")
@example(r"\>(a)")
def test_wherever_a_pattern_fits_a_line_it_has_a_span_there(regex):
    pattern = Pattern(regex, is_regex=True)
    try:
        pattern.check()
    except QueryError:
        return
    lines = ["a", "(ax)", "[a](x", "^a-:", "QE<P>"]

    spans = pattern.spans(lines)

    assert [span is not None for span in spans] == [count > 0 for count in pattern.counts(pa.array(lines)).to_pylist()]
