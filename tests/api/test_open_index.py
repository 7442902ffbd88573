"""`from docindex_dagster import open_index` gives programs the same results as the commands."""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

import pytest

import docindex_dagster
from docindex_dagster import (
    DamagedStoreError,
    DocindexWarning,
    Granularity,
    Index,
    Mode,
    QueryError,
    SettingsError,
    SourceError,
    StoreError,
    open_index,
)
from docindex_dagster.core.layout import Layout
from docindex_dagster.search.model import GranularityName, ModeName
from docindex_dagster.stores.prune import erase_stores
from tests.api.conftest import DECLARED, index_all

UNREACHABLE = '\n[rerank]\nprovider = "remote"\nurl = "http://127.0.0.1:9/rerank"\n'


@pytest.fixture
def index(root) -> Index:
    return open_index(root)


def as_json(value: Any) -> Any:
    return json.loads(json.dumps(value, default=lambda item: asdict(item) if hasattr(item, "__slots__") else str(item)))


def command(root: Path, *arguments: str) -> Any:
    """Run a command and return its JSON output."""
    result = subprocess.run(
        [sys.executable, "-m", "docindex_dagster.cli", *arguments, "--json"],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(result.stdout)


# Answers.


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ({}, ()),
        ({"mode": "bm25", "top_k": 2}, ("--mode", "bm25", "--top-k", "2")),
        ({"granularity": "file", "languages": "python"}, ("--granularity", "file", "--language", "python")),
        ({"sources": ["station"], "symbol_kinds": ["function"]}, ("--source", "station", "--kind", "function")),
        ({"source_types": ["commit", "doc"], "rerank": "mmr"}, ("-t", "commit", "-t", "doc", "--rerank", "mmr")),
    ],
    ids=["plain", "words", "files", "functions", "commits"],
)
def test_a_search_gives_what_the_command_gives(root, index, options, arguments):
    hits = index.search("pump", **options)

    assert hits
    assert as_json(hits) == command(root, "search", "pump", *arguments)


def test_matches_are_those_of_the_command(root, index):
    found = index.matches("pump", path="src", limit=2)

    assert len(found.matches) == 2 < found.total
    assert as_json(found) == command(root, "search", "pump", "--mode", "literal", "--path", "src", "--top-k", "2")
    assert index.matches("pu.p", regex=True, limit=0).total == index.matches("pump").total


def test_a_context_is_that_of_the_command(root, index):
    context = index.context("prime the pump", budget=120)

    assert 0 < context.tokens <= 120
    assert as_json(context) == command(root, "search", "prime the pump", "--context", "120")


def edges(root: Path, *arguments: str) -> list[dict[str, Any]]:
    """Run a graph command and return its edges without file paths on disk, which only the command adds."""
    return [{name: value for name, value in edge.items() if name != "file"} for edge in command(root, *arguments)]


def test_the_graph_answers_as_the_command_does(root, index):
    graph = index.graph

    assert as_json(graph.callers("prime_pump")) == edges(root, "graph", "callers", "prime_pump")
    assert as_json(graph.callees("prime_pump")) == edges(root, "graph", "callees", "prime_pump")
    assert as_json(graph.impact("open_valve")) == edges(root, "graph", "impact", "open_valve")
    near = edges(root, "graph", "neighbors", "prime_pump", "--edge", "calls")
    assert as_json(graph.neighbors("prime_pump", predicates="calls")) == near
    way = edges(root, "graph", "path", "start_station", "open_valve")
    assert as_json(graph.path("start_station", "open_valve")) == way
    assert as_json(graph.statistics(sources="station")) == command(root, "graph", "stats", "--source", "station")
    assert graph.cycles() == command(root, "graph", "cycles") == []
    assert [step.subject.partition("::")[2] for step in graph.callers("open_valve", depth=2)] == [
        "prime_pump",
        "start_station",
    ]


def test_the_whole_graph_is_there_for_networkx(index):
    graph = index.graph.to_networkx()

    assert graph.has_edge(
        "git/station!src/station.py::start_station", "git/station!src/pump.py::prime_pump", key="calls"
    )
    assert graph.number_of_nodes() == sum(index.graph.statistics().nodes.values())


def test_sources_are_described_as_by_the_command(root, index):
    reported = as_json(index.sources(look_s=None))

    assert [(one["source"], one["state"], one["files"], one["commits"]) for one in reported] == [
        ("git/station", "ok", 2, 1),
        ("library/manual", "ok", 1, 0),
    ]
    assert all(one["is_current"] for one in reported)
    assert reported == command(root, "status", "--check")


def test_a_source_that_was_edited_is_not_current(root, index):
    (root / "manual" / "guide.md").write_text("# Guide\n")

    assert {one.source: one.is_current for one in index.sources(look_s=None)} == {
        "git/station": True,
        "library/manual": False,
    }


# Projects and generations.


def test_the_project_is_found_as_the_command_line_finds_it(root, monkeypatch):
    places = (root, str(root), root / "station" / "src", root / "docindex.toml")
    assert {repr(open_index(place)) for place in places} == {f"Index({str(root)!r})"}

    monkeypatch.chdir(root / "manual")
    assert repr(open_index()) == f"Index({str(root)!r})"

    monkeypatch.chdir("/")
    monkeypatch.setenv("DOCINDEX_ROOT", str(root))
    assert repr(open_index()) == f"Index({str(root)!r})"


def test_an_index_that_lies_elsewhere_is_found_by_its_home(root, tmp_path, monkeypatch):
    (root / ".docindex").rename(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="docindex index"):
        open_index(root)

    index = open_index(root, home="elsewhere")
    (root / "docindex.toml").write_text(f"{DECLARED}\n[search]\ntop_k = 1\n")
    monkeypatch.chdir("/")

    assert len(index.search("pump")) == 1


def test_what_is_published_later_is_found_without_opening_anew(root, index):
    graph, generation = index.graph, index.generation
    with pytest.warns(DocindexWarning, match='"marmots" does not occur'):
        assert not index.search("marmots", mode="bm25")
    (root / "manual" / "marmots.md").write_text("# Marmots\n\nMarmots whistle.\n")
    (root / "station" / "src" / "night.py").write_text(
        "from pump import prime_pump\n\ndef sleep():\n    prime_pump(1)\n"
    )

    index_all(root)

    assert [hit.path for hit in index.search("marmots", mode="bm25")] == ["marmots.md"]
    assert [step.path for step in graph.callers("prime_pump")] == ["src/night.py", "src/station.py"]
    assert index.generation > generation


def test_tables_stay_those_of_their_generation(root, index):
    before = index.tables()
    (root / "manual" / "guide.md").write_text("# Guide\n\nMarmots whistle.\n")
    index_all(root)

    assert "Marmots" not in str(before.chunks.to_arrow("text"))
    assert "Marmots" in str(index.tables().chunks.to_arrow("text"))
    assert len(before.vectors()) == before.chunks.to_arrow("text").num_rows
    assert before.generation < index.tables().generation


def test_tables_that_were_cleared_away_say_so(root, index):
    layout = Layout(root / ".docindex")
    tables = index.tables()
    erase_stores(layout)

    with pytest.raises(StoreError, match=r"was removed .* Call tables\(\) again") as reported:
        tables.chunks.to_arrow()

    assert not isinstance(reported.value, DamagedStoreError)
    assert index.tables().chunks.to_arrow().num_rows == len(index.tables().vectors()) > 0


@pytest.mark.filterwarnings("ignore:library/docs has changed")  # the test edits it throughout
def test_while_runs_publish_every_answer_is_of_one_revision(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docindex.toml").write_text('[[source]]\nkind = "library"\npath = "docs"\n')
    is_over = threading.Event()
    published = 0

    def publish() -> None:
        nonlocal published
        sections = (f"## Part {part}\n\n" + f"part {part} of revision {published}. " * 60 for part in range(6))
        (tmp_path / "page.tmp").write_text("\n\n".join(sections))
        (tmp_path / "page.tmp").replace(tmp_path / "docs" / "page.md")
        index_all(tmp_path)
        published += 1

    def publish_on() -> None:
        while not is_over.is_set() or published < 4:
            publish()

    publish()
    index = open_index(tmp_path)
    publisher = threading.Thread(target=publish_on)
    publisher.start()
    try:
        answers = []
        for _ in range(20):
            answers.append("".join(hit.text for hit in index.search("part of revision")))
            answers.append(index.context("part of revision").markdown)
            answers.append("".join(index.tables().chunks.to_arrow("text")["text"].to_pylist()))
    finally:
        is_over.set()
        publisher.join()

    assert [len(set(re.findall(r"revision (\d+)", answer))) for answer in answers] == [1] * 60
    assert f"revision {published - 1}" in index.search("part of revision")[0].text


def test_several_threads_may_ask(index):
    def ask(_: int) -> tuple[int, int, int]:
        found = (index.search("pump"), index.graph.callers("prime_pump"), index.tables().vectors())
        return len(found[0]), len(found[1]), len(found[2])

    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(ask, range(20)))

    assert set(answers) == {ask(0)}


def test_a_source_that_is_declared_later_is_known(root, index):
    (root / "more").mkdir()
    (root / "more" / "more.md").write_text("# More\n\nMarmots whistle.\n")
    (root / "docindex.toml").write_text(f'{DECLARED}\n[[source]]\nkind = "library"\npath = "more"\n')
    index_all(root)

    assert [hit.source for hit in index.search("marmots", sources="more")] == ["library/more"]
    assert "library/more" in {one.source for one in index.sources()}


# Errors and warnings.


def test_opening_says_what_is_missing_and_what_to_do(tmp_path, monkeypatch):
    monkeypatch.delenv("DOCINDEX_ROOT", raising=False)
    with pytest.raises(SourceError, match=r"path not found: .*nowhere"):
        open_index(tmp_path / "nowhere")
    with pytest.raises(SourceError, match="path not found"):
        open_index("\0")
    with pytest.raises(
        SourceError, match=rf"{tmp_path} and its parent folders have no docindex\.toml.*`docindex init`"
    ):
        open_index(tmp_path)
    (tmp_path / "docindex.toml").write_text(DECLARED)
    with pytest.raises(StoreError, match=r"nothing is indexed in .* yet\. Run `docindex index`"):
        open_index(tmp_path)
    (tmp_path / "docindex.toml").write_text("source = 3\n")
    with pytest.raises(SettingsError, match=r"docindex\.toml: source"):
        open_index(tmp_path)


@pytest.mark.parametrize(
    ("query", "options", "error", "problem"),
    [
        ("", {}, QueryError, "the query is empty"),
        (" \n", {}, QueryError, "the query is empty"),
        ("x", {"top_k": 0}, QueryError, "top_k must be 1 to 1,000, not 0"),
        ("x", {"top_k": 1001}, QueryError, "top_k must be 1 to 1,000"),
        ("x", {"mode": "psychic"}, QueryError, "mode should be 'hybrid', 'vector', 'bm25'"),
        ("x", {"granularity": "page"}, QueryError, "granularity should be 'chunk' or 'file', not 'page'"),
        ("x(", {"mode": "regex"}, QueryError, "invalid RE2 pattern"),
        ("x", {"sources": "nowhere"}, SourceError, "source 'nowhere' not found"),
        ("x", {"sources": "\ud800"}, SourceError, "source '\ufffd' not found"),
        ("x", {"languages": "klingon"}, QueryError, "languages: markdown, python"),
        ("x", {"symbol_kinds": "verb"}, QueryError, "Kinds: class, constant"),
        (
            "x",
            {"source_types": "docs"},
            QueryError,
            "should be 'doc', 'code', 'test', 'config' or 'commit', not 'docs'",
        ),
        ("x", {"path": "*" * 400}, QueryError, "too complex"),
        ("x", {"path": "\ud800\0"}, QueryError, "no indexed file has the path"),
        ("x", {"rerank": "\udfff"}, SettingsError, "must be one of"),
    ],
)
def test_what_cannot_be_asked_is_reported_in_words(index, query, options, error, problem):
    with pytest.raises(error, match=re.escape(problem)):
        index.search(query, **options)


@pytest.mark.parametrize("mode", get_args(ModeName))
def test_half_a_character_is_looked_for_like_any_other_text(index, mode):
    assert isinstance(index.search("pump \ud800\0", mode=mode), list)
    assert index.context("pump \udfff", mode="bm25").passages


def test_the_graph_says_what_it_does_not_have(index):
    with pytest.raises(QueryError, match="'prime_pumps' not found in the graph: did you mean prime_pump"):
        index.graph.callers("prime_pumps")
    for symbol in ("\ud800", "", "\0", "x" * 10_000):
        with pytest.raises(QueryError):
            index.graph.neighbors(symbol)
    with pytest.raises(QueryError, match="depth should be greater than or equal to 1, not 0"):
        index.graph.impact("prime_pump", depth=0)
    with pytest.raises(SourceError, match="source 'nowhere' not found"):
        index.graph.statistics(sources="nowhere")
    with pytest.raises(QueryError, match="budget must be at least 1"):
        index.context("pump", budget=0)


def test_a_warning_is_of_the_line_that_asked(root, index):
    (root / "docindex.toml").write_text(DECLARED + UNREACHABLE)

    with pytest.warns(DocindexWarning, match="not reranked: 127.0.0.1 cannot be reached") as reported:
        hits = index.search("pump")
    with pytest.warns(DocindexWarning, match="not reranked: 127.0.0.1 cannot be reached"):
        index.context("pump")

    assert hits
    assert [warning.filename for warning in reported] == [__file__]


def test_a_callback_gets_them_instead(root):
    (root / "docindex.toml").write_text(DECLARED + UNREACHABLE)
    reported: list[str] = []

    assert open_index(root, warn=reported.append).search("pump")

    assert reported == ["the results are not reranked: 127.0.0.1 cannot be reached"]


def test_a_damaged_index_is_reported_as_such(root, index):
    tables = index.tables()
    shutil.rmtree(root / ".docindex" / "stores" / "lance")

    with pytest.raises(DamagedStoreError, match="docindex doctor --repair"):
        tables.chunks.to_arrow()


def test_an_index_of_another_version_is_searched_and_its_tables_are_not_read(root):
    current = root / ".docindex" / "stores" / "CURRENT"
    current.write_text(json.dumps({**json.loads(current.read_text()), "schema_version": "another"}))
    index = open_index(root)

    assert index.search("pump", mode="bm25")
    with pytest.raises(StoreError, match="another version of docindex built the index"):
        index.tables()


# The package.


def test_what_the_package_offers_is_there_and_nothing_else():
    for name in docindex_dagster.__all__:
        assert getattr(docindex_dagster, name) is not None
    assert set(docindex_dagster.__all__) <= set(dir(docindex_dagster))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = docindex_dagster.nothing  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("program", "loaded"),
    [
        ("import docindex_dagster", set()),
        ("from docindex_dagster import QueryError", set()),
        ("from docindex_dagster import open_index; open_index()", {"tantivy", "numpy"}),
    ],
)
def test_the_package_loads_no_more_than_is_used(root, program, loaded):
    heavy = {"dagster", "lancedb", "tantivy", "numpy", "networkx", "tree_sitter", "pandas"}
    code = f"import sys; {program}; print(*{heavy} & set(sys.modules))"
    environment = {**os.environ, "PYTHONPATH": str(Path(docindex_dagster.__file__).parent.parent)}
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=root, env=environment, check=True, capture_output=True, text=True
    )

    assert set(result.stdout.split()) == loaded


def test_modes_and_granularities_are_named_as_their_types_say():
    assert get_args(ModeName) == tuple(Mode)
    assert get_args(GranularityName) == tuple(Granularity)
