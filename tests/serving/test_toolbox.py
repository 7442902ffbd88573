"""Tests of the answering agent's tools: the MCP tools, restricted by the question's filters, with passages to cite."""

from collections.abc import Callable
from typing import Any

import anyio
import pytest
from mcp import Client

from docindex_dagster.answering import prompt
from docindex_dagster.answering.agent import ToolResult
from docindex_dagster.answering.conversation import Conversation, Reading
from docindex_dagster.answering.question import Question
from docindex_dagster.core.errors import QueryError
from docindex_dagster.core.tokenizer import count_tokens
from docindex_dagster.search.filters import Filters
from docindex_dagster.search.live_index import Live
from docindex_dagster.serving.mcp_server import server
from docindex_dagster.serving.question_tools import QuestionTools
from docindex_dagster.serving.tools import Tools
from tests.answering import projects
from tests.serving.http.conftest import TANK

LONG = "# Log\n\n" + "\n\n".join(f"## Day {day}\n\n" + f"On day {day} the gauge was read. " * 60 for day in range(60))
Call = Callable[..., ToolResult]


@pytest.fixture(scope="module")
def live(tmp_path_factory) -> Live:
    return projects.live_of(projects.make(tmp_path_factory.mktemp("project"), {"log.md": LONG}))


@pytest.fixture
def call(live) -> Call:
    """Return a function that calls a tool for a question with filters."""

    def make(tool: str, filters: Filters | None = None, max_tokens: int = 4000, **arguments: Any) -> ToolResult:
        question = Question("What?", filters=lambda _: filters or Filters())
        return QuestionTools(live, question).call(tool, arguments, max_tokens)

    return make


def places(looked: ToolResult) -> list[str]:
    return [f"{one.source} {one.path}:{one.start_line}-{one.end_line}" for one in looked.context.passages]


def test_tools_have_the_descriptions_and_arguments_of_the_protocol(live):
    async def listed() -> dict[str, Any]:
        async with Client(server(Tools(live, lambda _: {}))) as client:
            return {tool.name: tool for tool in (await client.list_tools()).tools}

    ours = anyio.run(listed)
    found = {tool.name: tool for tool in QuestionTools(live, Question("What?")).tools}

    assert list(found) == ["search", "context", "show", "graph", "log"]
    for name, tool in found.items():
        theirs = ours[name].input_schema["properties"]
        assert tool.description == ours[name].description
        assert set(tool.parameters["properties"]) == set(theirs) - {"max_tokens"}
        for argument, schema in tool.parameters["properties"].items():
            kinds = [kind for kind in theirs[argument].get("anyOf", [{}]) if kind != {"type": "null"}]
            wanted = theirs[argument] | kinds[0]
            assert schema == {key: wanted[key] for key in wanted.keys() - {"title", "anyOf"} if wanted[key] is not None}
        assert tool.parameters.get("required") == ours[name].input_schema.get("required")


def test_search_gives_the_lines_that_match_best(call):
    looked = call("search", query="how is a pump started", top_k=1)

    (passage,) = looked.context.passages
    assert (passage.source, passage.path, passage.start_line) == ("library/manual", "pumps.md", 5)
    assert passage.text.startswith("How a pump is started")
    assert passage.chunk_ids
    assert looked.outcome == "passages: 1, files: 1"
    assert looked.text == 'More results; continue with cursor "1".'
    assert places(call("search", query="how is a pump started", top_k=1, cursor="1")) != places(looked)


def test_search_for_exact_text_gives_each_line(call):
    looked = call("search", query="litres)", mode="literal", sources=["shop"], top_k=3)

    assert places(looked) == [f"git/shop tank.py:{line}-{line}" for line in (4, 6, 9)]
    assert looked.text == 'Matches in all: 6, in files: 1.\nMore results; continue with cursor "3".'
    assert all(passage.chunk_ids for passage in looked.context.passages)


def test_context_gives_whole_passages(call):
    (passage,) = call("context", query="pump", sources="shop", types=["code"]).context.passages

    assert passage.text == TANK.strip()


@pytest.mark.parametrize(
    "reference", ["tank.py:2", "./tank.py:2", "git/shop tank.py:2-3", "git/shop::tank.py::0", "tank.py"]
)
def test_show_gives_a_place_whole(call, reference):
    assert places(call("show", reference=reference)) == ["git/shop tank.py:1-18"]


def test_show_goes_on_by_its_cursor_until_the_end_of_a_file(call):
    days, cursor = [], None
    for _ in range(50):
        looked = call("show", reference="log.md", cursor=cursor, max_tokens=1500)
        days += [line for one in looked.context.passages for line in one.text.split("\n") if line.startswith("## Day")]
        if not looked.text:
            break
        cursor = looked.text.removeprefix('More results; continue with cursor "').removesuffix('".')

    assert days == [f"## Day {day}" for day in range(60)]


def test_graph_and_log_give_text(call):
    graph = call("graph", question="callers", symbol="pump")
    log = call("log", query="tank", top_k=1)

    assert "git/shop!tank.py::pump <-calls- git/shop!tank.py::Tank.fill (tank.py:6; same file)" in graph.text
    assert (graph.outcome, log.outcome) == ("edges: 2", "commits: 1")
    assert "   | Add the tank\n   A tank.py +18 -0" in log.text
    assert "@" not in log.text


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("search", {"query": "gauge", "top_k": 50}),
        ("search", {"query": "gauge", "top_k": 50, "mode": "literal"}),
        ("context", {"query": "which day was the gauge read"}),
        ("show", {"reference": "log.md"}),
        ("graph", {"question": "neighbors", "symbol": "log.md"}),
        ("log", {"top_k": 50}),
    ],
)
@pytest.mark.parametrize("max_tokens", [250, 1000, 4000])
def test_nothing_is_larger_than_what_is_left_for_it(call, tool, arguments, max_tokens):
    looked = call(tool, max_tokens=max_tokens, **arguments)

    read = Reading(Conversation()).add(looked.context) if looked.context else None
    text = prompt.found(read.new if read else (), read.again if read else (), looked.text, "Calls left: 3.")
    assert count_tokens([text])[0] <= max_tokens


# Results outside the filters

MANUAL = Filters(sources=("library/manual",))
ON_PATH = Filters(sources=("git/shop",), path_glob="tests/")


def test_a_call_stays_within_the_sources_of_its_question(call):
    for looked in (
        call("search", MANUAL, query="pump", top_k=50),
        call("context", MANUAL, query="pump MARMOT vault"),
        call("show", MANUAL, reference="pumps.md"),
    ):
        assert {passage.source for passage in looked.context.passages} == {"library/manual"}
    assert "No commits found" in call("log", MANUAL).text


@pytest.mark.parametrize("name", ["vault", "library/vault", "git/shop", "git/nowhere", "../vault", ""])
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("search", {"query": "MARMOT"}),
        ("search", {"query": "MARMOT", "mode": "literal"}),
        ("context", {"query": "MARMOT"}),
        ("show", {"reference": "vault.md"}),
        ("graph", {"question": "callers", "symbol": "pump"}),
        ("log", {}),
    ],
)
def test_a_source_outside_is_refused_with_those_within(call, tool, arguments, name):
    with pytest.raises(QueryError, match=r"is not a source of this question: library/manual$"):
        call(tool, MANUAL, sources=["manual", name], **arguments)


@pytest.mark.parametrize(
    "reference",
    [
        "vault.md",
        "vault.md:3",
        "library/vault::vault.md::0",
        "library/vault vault.md:1",
        "/etc/passwd",
        "../vault/vault.md",
    ],
)
def test_show_refuses_what_lies_in_other_sources(call, reference):
    with pytest.raises(QueryError) as error:
        call("show", MANUAL, reference=reference)

    assert "MARMOT" not in str(error.value)


@pytest.mark.parametrize(
    ("filters", "reference"),
    [
        (ON_PATH, "tank.py"),
        (ON_PATH, "tank.py:3"),
        (ON_PATH, "tank.py:999"),
        (Filters(languages=("markdown",)), "tank.py"),
        (Filters(source_types=("doc",)), "tank.py"),
        (Filters(source_types=("test",)), "tank.py:1"),
        (Filters(symbol_kinds=("class",)), "pumps.md"),
        (Filters(human_languages=("pt",)), "tank.py"),
        (Filters(places=(("git/shop", "/tests/"),)), "tank.py"),
    ],
)
def test_show_refuses_what_the_other_filters_keep_out_and_does_not_say_what_it_is(call, filters, reference):
    with pytest.raises(QueryError, match=r"^no indexed chunk in the scope of this question is named"):
        call("show", filters, reference=reference)


def test_show_refuses_an_id_and_a_commit_outside(call):
    (tank,) = call("show", reference="tank.py").context.passages
    commit = call("log", path="tank.py").text.split()[1]

    assert call("show", reference=commit).context.passages
    for reference in (tank.chunk_ids[0], commit):
        with pytest.raises(QueryError, match="no indexed chunk in the scope of this question"):
            call("show", ON_PATH, reference=reference)
        with pytest.raises(QueryError, match="no indexed chunk"):
            call("show", MANUAL, reference=reference)


@pytest.mark.parametrize("path", [None, "**/*", "tank.py", "../tank.py", "/", "*.py"])
@pytest.mark.parametrize("mode", ["hybrid", "graph", "literal"])
def test_a_path_of_a_call_narrows_and_never_widens(call, path, mode):
    try:
        found = places(call("search", ON_PATH, query="pump", mode=mode, path=path, top_k=50))
    except QueryError as error:
        assert "matches all filters together" in str(error) or "no indexed" in str(error)  # noqa: PT017
        assert path in {"tank.py", "../tank.py"}
    else:
        assert {place.split(":")[0] for place in found} == {"git/shop tests/test_tank.py"}


def test_a_path_narrows_a_question_without_one(call):
    found = places(call("search", query="pump", path="tests/", top_k=50))

    assert {place.split(":")[0] for place in found} == {"git/shop tests/test_tank.py"}


@pytest.mark.parametrize(
    ("filters", "argument", "wanted"),
    [
        (Filters(languages=("markdown",)), "languages", "python"),
        (Filters(source_types=("doc",)), "types", "commit"),
        (Filters(symbol_kinds=("class",)), "kinds", "function"),
        (Filters(human_languages=("en",)), "human_languages", "pt"),
    ],
)
def test_values_of_a_call_that_the_question_excludes_are_refused(call, filters, argument, wanted):
    for tool in ("search", "context"):
        with pytest.raises(QueryError, match=f"^{argument}: the question is limited to"):
            call(tool, filters, query="pump", **{argument: [wanted]})


def test_edges_are_those_that_places_within_prove(call):
    looked = call("graph", ON_PATH, question="callers", symbol="pump")

    assert "test_pump" in looked.text
    assert "Tank.fill" not in looked.text
    assert "left out" in looked.text
    with pytest.raises(QueryError, match="stats cover entire sources"):
        call("graph", ON_PATH, question="stats")
    with pytest.raises(QueryError, match="'pump' not found in the graph"):
        call("graph", MANUAL, question="callers", symbol="pump")


@pytest.mark.parametrize("path", [None, "**/*.py", "tank.py"])
def test_commits_are_those_of_files_within_and_name_no_other(call, path):
    text = call("log", ON_PATH, path=path).text

    assert ("Test the pump" in text) == (path != "tank.py")
    assert "A tank.py" not in text
    assert "Add the tank" not in text


@pytest.mark.parametrize(("tool", "given"), [("show", {"reference": "\ud800x"}), ("graph", {"symbol": "\ud800x"})])
def test_half_a_surrogate_pair_names_nothing(call, tool, given):
    with pytest.raises(QueryError, match="\ufffdx"):
        call(tool, **({"question": "callers"} if tool == "graph" else {}), **given)
