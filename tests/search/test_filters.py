"""Filters are exact: every hit matches all of them, and no matching chunk is lost."""

import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import cache

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from docindex_dagster.core.errors import QueryError
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.schemas import CHUNKS
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.search.candidates import Pool, Ranking, bm25, vector
from docindex_dagster.search.engine import search
from docindex_dagster.search.filters import Filters, escape_glob, glob_to_regex
from docindex_dagster.search.model import Granularity, Hit, Mode
from docindex_dagster.search.query import understand
from docindex_dagster.search.text_scan import Pattern, find_matching_chunks
from docindex_dagster.search.weights import WEIGHTS
from docindex_dagster.stores.reader import Reader, open_reader
from tests.conftest import chunks_of, publish_rows, vectors_of

SOURCES = ("library/a", "git/b")
LANGUAGES = ("python", "go", None)  # None becomes `text` in filters
TYPES = ("code", "test", "doc", "config")
KINDS = ("function", "class", None)
GLOBS = (
    *("*.py", "src/*", "src/**", "**/x*.md", "lib/y?.py", "nothing"),
    *("*.{md,py}", "{src,lib}/*.py", "src/{deep/x,y}*", "[w-x]*.py", "lib/y[!0-3].py", "lib/[yz][4-9+./].{md,py}"),
)
WORDS = ("pump", "valve", "tank", "meter", "relay")
QUERIES = ("pump", "open the valve", "tank_meter", "relay relay pump", "e")
NEVER = 10_000


def varied(source: str) -> pa.Table:
    """Return 40 chunks that differ in their fields."""
    files = {}
    for at in range(20):
        path = f"{('src', 'lib', 'src/deep')[at % 3]}/{'xy'[at % 2]}{at % 7}{('.py', '.md')[at % 5 == 0]}"
        files[path] = [f"{WORDS[at % 5]}_{at} opens the {WORDS[(at * 3 + part) % 5]} {part}" for part in range(2)]
    chunks = chunks_of(files, source)
    count = chunks.num_rows
    for name, values in (("language", LANGUAGES), ("source_type", TYPES), ("symbol_kind", KINDS)):
        column = pa.array([values[(at * 7 + len(source)) % len(values)] for at in range(count)], pa.string())
        chunks = chunks.set_column(CHUNKS.get_field_index(name), CHUNKS.field(name), column)
    return chunks


@pytest.fixture(scope="module", params=["in memory", "in LanceDB"])
def reader(tmp_path_factory, request) -> Reader:
    layout = Layout(tmp_path_factory.mktemp("index"))
    for source in SOURCES:
        chunks = varied(source)
        publish_rows(layout, source, chunks, vectors_of(chunks))
    reader = open_reader(layout)
    if request.param == "in LanceDB":
        vars(reader)["matrix"] = None  # as if there were too many vectors for memory
    return reader


@pytest.fixture(scope="module")
def everything(reader: Reader) -> Callable[[str, Mode], list[Hit]]:
    """Return a function that searches without filters."""

    @cache
    def find(query: str, mode: Mode) -> list[Hit]:
        return search(reader, query, StaticEmbedder, mode=mode, top_k=NEVER)

    return find


def some(values: tuple[str | None, ...]) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from([value for value in values if value]), max_size=2, unique=True).map(tuple)


FILTERS = st.builds(
    Filters,
    sources=some(SOURCES),
    languages=some(("python", "go", "text")),
    source_types=some(TYPES),
    symbol_kinds=some(KINDS),
    path_glob=st.none() | st.sampled_from(GLOBS),
    places=st.lists(st.tuples(st.sampled_from(SOURCES), st.sampled_from(GLOBS)), max_size=2).map(tuple),
)
slowly = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


def meets(hit: Hit, filters: Filters) -> bool:
    return (
        (not filters.sources or hit.source in filters.sources)
        and (not filters.languages or (hit.language or "text") in filters.languages)
        and (not filters.source_types or hit.source_type in filters.source_types)
        and (not filters.symbol_kinds or hit.symbol_kind in filters.symbol_kinds)
        and (filters.path_glob is None or fits(hit.path, filters.path_glob))
        and (not filters.places or any(hit.source == at and fits(hit.path, glob) for at, glob in filters.places))
    )


def fits(path: str, glob: str) -> bool:
    """Match the globs of this module without the code of the filters."""
    folder, _, name = path.rpartition("/")
    expected = {
        "*.py": name.endswith(".py"),
        "src/*": folder == "src",
        "src/**": path.startswith("src/"),
        "**/x*.md": fnmatchcase(name, "x*.md"),
        "*.{md,py}": name.endswith((".md", ".py")),
        "{src,lib}/*.py": folder in {"src", "lib"} and name.endswith(".py"),
        "src/{deep/x,y}*": path.startswith(("src/deep/x", "src/y")) and path.count("/") <= path.count("/deep/") + 1,
        "[w-x]*.py": name[0] in "wx" and name.endswith(".py"),
        "lib/y[!0-3].py": folder == "lib" and re.fullmatch(r"y[^0-3]\.py", name) is not None,
        "lib/y?.py": folder == "lib" and fnmatchcase(name, "y?.py"),
    }
    return expected.get(glob, False)


@slowly
@given(filters=FILTERS, query=st.sampled_from(QUERIES), mode=st.sampled_from(Mode), by=st.sampled_from(Granularity))
def test_every_hit_meets_every_filter(reader, filters, query, mode, by):
    hits = search(reader, query, StaticEmbedder, mode=mode, granularity=by, filters=filters, top_k=100, pool=3)

    assert all(meets(hit, filters) for hit in hits)


@slowly
@given(filters=FILTERS, query=st.sampled_from(QUERIES), mode=st.sampled_from(Mode))
def test_a_filtered_search_finds_all_that_an_unfiltered_one_finds_and_that_meets_the_filters(
    reader, everything, filters, query, mode
):
    filtered = search(reader, query, StaticEmbedder, mode=mode, top_k=NEVER, filters=filters)

    assert {hit.chunk_id for hit in filtered} == {
        hit.chunk_id for hit in everything(query, mode) if meets(hit, filters)
    }


@slowly
@given(filters=FILTERS, query=st.sampled_from(QUERIES), limit=st.integers(1, 12))
def test_a_retriever_gives_the_best_that_meet_the_filters_however_few_it_is_asked_for(
    reader, everything, filters, query, limit
):
    all_chunks = everything("e", Mode.LITERAL)
    meeting = {hit.chunk_id for hit in all_chunks if meets(hit, filters)}
    asked, pattern = understand(query), Pattern(query, is_regex=False)

    def both(of: Filters, most: int) -> list[Ranking]:
        pool = Pool(reader, of, most)
        by_vector = vector(pool, StaticEmbedder().embed_query(query))
        return [bm25(pool, asked, WEIGHTS), [(found, round(score, 4)) for found, score in by_vector]]

    for filtered, unfiltered in zip(both(filters, limit), both(Filters(), NEVER), strict=True):
        expected = [item for item in unfiltered if item[0] in meeting][:limit]
        assert [score for _, score in filtered] == pytest.approx([score for _, score in expected], abs=2e-4)
        assert {chunk_id for chunk_id, _ in filtered} <= meeting
    assert {chunk_id for chunk_id, _ in find_matching_chunks(Pool(reader, filters, NEVER), pattern)} == {
        hit.chunk_id for hit in all_chunks if hit.chunk_id in meeting and query in hit.text
    }


@pytest.mark.parametrize(
    ("glob", "matched", "others"),
    [
        ("*.{ts,tsx}", ["a.ts", "web/b.tsx"], ["a.js", "a.ts.bak", "ts"]),
        ("[a-c]*.py", ["b.py", "x/c1.py"], ["d.py", "x/d.py", "B.py"]),
        ("src/[!_]*.go", ["src/a.go"], ["src/_a.go", "src//a.go", "a.go"]),
        ("{src,test}/**/*_{a,b}.{c,h}", ["src/x_a.c", "test/y/z_b.h"], ["lib/x_a.c", "src/x_c.c"]),
        ("src/{api,core/{db,io}}", ["src/api", "src/api/x.py", "src/core/db/y.py"], ["src/core/x.py", "src/apis"]),
        ("app/[slug]/page.tsx", ["app/[slug]/page.tsx", "app/s/page.tsx"], ["app/slug/page.tsx"]),
        ("app/[[...rest]]", ["app/[[...rest]]/page.tsx"], ["app/rest/page.tsx"]),
        ("{library}/a.md", ["{library}/a.md"], ["library/a.md"]),
        ("a{b,c", ["a{b,c"], ["ab", "ac"]),
        ("[z-a].md", ["[z-a].md"], ["z.md", "a.md", "m.md"]),
        ("x[+-9]y", ["x1y", "x.y"], ["x/y"]),
        ("[]a].md", ["].md", "a.md"], ["b.md"]),
        ("[ä-ü]*.md", ["über.md"], ["hello.md"]),
        ("a[&&~~--].md", ["a&.md", "a~.md"], ["ab.md", "a.md"]),
        ("[*].md", ["*.md"], ["a.md"]),
    ],
)
def test_braces_and_classes_mean_the_same_to_each_store(layout, glob, matched, others):
    chunks = chunks_of({path: ["open the pump"] for path in (*matched, *others)}, "library/a")
    publish_rows(layout, "library/a", chunks, vectors_of(chunks))
    reader = open_reader(layout)
    filters = Filters(path_glob=glob)
    filters.check(reader.index.schema)

    masked = chunks.filter(pa.array(filters.to_mask(chunks)))["path"].to_pylist()
    hits = search(reader, "open the pump", StaticEmbedder, mode=Mode.BM25, top_k=NEVER, filters=filters)

    assert sorted(masked) == sorted(hit.path for hit in hits) == sorted(matched)


@given(st.text(st.sampled_from("*?[]{},!^-/ab.\\&é"), max_size=60))
def test_an_escaped_path_matches_itself_and_nothing_else(path):
    regex = re.compile(rf"(?s:{glob_to_regex('/' + escape_glob(path))})\Z")
    plain = path.strip("/").removeprefix("./")
    if plain not in {"", "."} and path == plain:
        assert regex.match(path)
        assert not regex.match(f"{path}x")


@pytest.mark.parametrize("glob", ["{" * 400, "[a" * 200, "{a,b}" * 60, "{a," * 100 + "b" + "}" * 100, "*{?,*}" * 9])
def test_a_glob_that_would_grow_without_bound_is_refused(layout, glob):
    chunks = chunks_of({"a.md": ["open the pump"]}, "library/a")
    publish_rows(layout, "library/a", chunks, vectors_of(chunks))

    with pytest.raises(QueryError, match="too complex"):
        Filters(path_glob=glob).check(open_reader(layout).index.schema)
