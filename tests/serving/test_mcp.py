"""Tests of `docindex mcp` with a real MCP client."""

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client, StdioServerParameters, stdio_client

from docindex_dagster.core.settings import load_settings
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.runner.run import index
from docindex_dagster.serving.mcp_server import well_formed
from docindex_dagster.sources import registry

SECTIONS = 6
TOOLS = {"search", "find_similar", "context", "show", "graph", "log", "why", "status"}


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    root: Path = tmp_path_factory.mktemp("project")
    (root / "docs").mkdir()
    (root / "docs" / "pump.md").write_text("# Pumps\n\n## Start\n\nHow a pump is started: open the valve first.\n")
    (root / "docs" / "station.py").write_text(
        'def start_pump(valve):\n    """Open the valve, then start."""\n    valve.open()\n    return "->> started"\n'
    )
    (root / "docs" / "yarn.lock").write_text("pump@1.0\n")
    (root / "docindex.toml").write_text('[[source]]\nkind = "library"\npath = "docs"\n')
    index_all(root)
    return root


def index_all(root: Path) -> None:
    settings = load_settings(root)
    for source in registry.sources(settings).values():
        index(settings, source, StaticEmbedder())


class Agent:
    """A client in its own thread, so that tests read from top to bottom."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def ask(self, *calls: tuple[str, dict[str, Any]]) -> list[tuple[bool, str]]:
        """Start the server, call tools one after another, and return for each whether it failed, and its text."""

        async def run() -> list[tuple[bool, str]]:
            async with Client(stdio_client(server(self.root))) as client:
                results = [await client.call_tool(name, arguments) for name, arguments in calls]
            return [(bool(result.is_error), result.content[0].text) for result in results]

        return anyio.run(run)


def server(root: Path) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable, args=["-m", "docindex_dagster.cli", "mcp"], cwd=root, env=dict(os.environ)
    )


@pytest.fixture
def agent(root) -> Agent:
    return Agent(root)


def test_it_says_what_each_tool_is_for_and_that_none_changes_anything(root):
    async def run() -> Any:
        async with Client(stdio_client(server(root))) as client:
            return (await client.list_tools()).tools

    tools = {tool.name: tool for tool in anyio.run(run)}

    assert set(tools) == TOOLS
    for tool in tools.values():
        assert tool.annotations.read_only_hint
        assert not tool.annotations.destructive_hint
        assert not tool.annotations.open_world_hint
        assert len(tool.description) > 100
        assert "\n " not in tool.description
        assert all("description" in argument for argument in tool.input_schema["properties"].values()), tool.name
    assert "self" not in json.dumps([tool.input_schema for tool in tools.values()])


def test_every_tool_answers(agent):
    answers = agent.ask(
        ("search", {"query": "how is a pump started", "types": ["doc"]}),
        ("search", {"query": "->>", "mode": "literal", "granularity": "file", "top_k": 1, "kinds": ["function"]}),
        ("context", {"query": "start a pump", "max_tokens": 300, "languages": "python", "path": "**/*.py"}),
        ("find_similar", {"place": "docs/station.py:3"}),
        ("show", {"reference": "station.py:2"}),
        ("show", {"reference": "pump.md", "sources": ["docs"]}),
        ("why", {"path": "docs/pump.md"}),
        ("why", {"path": "yarn.lock"}),
        ("status", {}),
    )

    assert not any(is_error for is_error, _ in answers)
    search, literal, context, similar, place, page, why, lock, status = (text for _, text in answers)
    assert re.search(r"^1\. library/docs pump\.md:5 \(section, markdown, doc, lines 1-5, score \d+\.\d{3}\)", search)
    assert re.search(r"^1\. library/docs pump\.md:1 \(section, markdown, doc, lines 1-5, score 0\.\d{3}\)", similar)
    assert re.search(r"file: /.*/docs/pump\.md:5\n", search)
    assert "How a pump is started" in search
    assert "station.py" in literal
    assert "->> started" in literal
    assert context.partition("\n\n")[2].startswith(
        "## library/docs station.py:1-4\n\nfunction `start_pump`; python\n\n```python\ndef "
    )
    assert "valve.open()" in place
    assert "chunk 1 of 1" in page
    assert "will be indexed" in why
    assert "1 chunk is searchable" in why
    assert "not indexed: always-skipped: *.lock" in lock
    assert "library/docs: ok; 2 files, 2 chunks" in status


def test_every_answer_leads_to_files_on_disk(agent, root):
    answers = agent.ask(
        ("search", {"query": "how is a pump started"}),
        ("search", {"query": "pump", "mode": "literal"}),
        ("find_similar", {"place": "docs/station.py:3"}),
        ("show", {"reference": "station.py:2"}),
        ("context", {"query": "start a pump"}),
        ("graph", {"question": "neighbors", "symbol": "start_pump"}),
    )

    search, literal, similar, show, context, graph = (text for _, text in answers)
    docs = root / "docs"
    assert f"file: {docs}/pump.md:5\n" in search
    assert f"file: {docs}/pump.md\n" in literal
    assert f"file: {docs}/pump.md:1\n" in similar
    assert show.count(f"file: {docs}/station.py\n") == 1
    assert context.startswith(f"Paths of library/docs are relative to {docs}.\n")
    assert graph.startswith(f"Paths of library/docs are relative to {docs}.\n")


def test_exact_texts_and_patterns_are_listed_by_line_with_how_many_there_are(agent, root):
    every, first, rest, none = (
        text
        for _, text in agent.ask(
            ("search", {"query": "pump", "mode": "literal"}),
            ("search", {"query": "[Pp]ump", "mode": "regex", "top_k": 2}),
            ("search", {"query": "[Pp]ump", "mode": "regex", "top_k": 2, "cursor": "2"}),
            ("search", {"query": "turbine", "mode": "literal"}),
        )
    )

    assert every == (
        "2 matches in 2 files.\n\n"
        f"library/docs pump.md\n   file: {root}/docs/pump.md\n   5:7 | How a pump is started: open the valve first.\n"
        f"library/docs station.py\n   file: {root}/docs/station.py\n   1:11 | def start_pump(valve):"
    )
    assert re.findall(r"^   (\d+:\d+) \|", first, re.MULTILINE) == ["1:3", "5:7"]
    assert first.endswith('1 more matches; continue with cursor "2".')
    assert re.findall(r"^   (\d+:\d+) \|", rest, re.MULTILINE) == ["1:11"]
    assert "go on" not in rest
    assert none.startswith("No matches.")


@pytest.mark.parametrize(
    ("tool", "arguments", "problem"),
    [
        ("search", {"query": "  "}, "the query is empty"),
        ("search", {}, "query is missing"),
        ("search", {"query": "x", "top_k": 0}, "top_k should be greater than or equal to 1, not 0"),
        ("search", {"query": "x", "mode": "psychic"}, "mode should be 'hybrid', "),
        ("search", {"query": "x", "types": ["prose"]}, "types[0] should be 'doc', "),
        ("search", {"query": "x", "limit": 3}, "search has no argument 'limit'; it accepts query, mode, "),
        ("search", {"query": "x", "cursor": "-1"}, "cursor: it is not from an answer"),
        ("find_similar", {"place": "nowhere.py:3"}, "no indexed chunk is named"),
        ("search", {"query": "x(", "mode": "regex"}, "invalid RE2 pattern"),
        ("search", {"query": "x", "sources": ["nowhere"]}, "source 'nowhere' not found"),
        ("search", {"query": "x", "languages": ["klingon"]}, "languages: markdown, python"),
        ("search", {"query": "x", "kinds": ["verb"]}, "Kinds: class, constant"),
        ("search", {"query": "x", "path": "*" * 400}, "too complex"),
        ("context", {"query": "x", "max_tokens": 5}, "max_tokens should be greater than or equal to 200, not 5"),
        ("log", {"since": "yesterday"}, "should be a date or time such as 2026-01-31"),
        ("log", {"since": 2024}, "should be a date or time such as 2026-01-31"),
        ("log", {"since": "2024-13-01"}, "since should be a valid date"),
        ("log", {"sources": ["nowhere"]}, "source 'nowhere' not found"),
        ("show", {"reference": "nowhere.py:3"}, "no indexed chunk is named"),
        ("show", {"reference": "\0"}, "no indexed chunk is named"),
        ("show", {"reference": "x" * 9000}, "x"),
        ("why", {"path": "/etc/passwd"}, "is not in any source"),
        ("why", {"path": "../../nowhere"}, "../../nowhere is not in any source"),
        ("why", {"path": "\0"}, "it contains a NUL"),
        ("nothing", {}, "tool 'nothing' not found; available tools: search, "),
    ],
)
def test_a_mistake_is_reported_in_words_and_the_server_goes_on(shared, tool, arguments, problem):
    is_error, text = shared(tool, arguments)

    assert is_error
    assert problem in text
    assert not re.search("Traceback|https?://|pydantic|Error executing tool", text)
    assert shared("search", {"query": "pump"})[0] is False


@pytest.fixture(scope="module")
def shared(root) -> Iterator[Any]:
    """Yield one server for many calls."""
    from anyio.from_thread import start_blocking_portal

    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Client(stdio_client(server(root)))) as client,
    ):

        def call(tool: str, arguments: dict[str, Any]) -> tuple[bool, str]:
            result = portal.call(client.call_tool, tool, arguments)
            return bool(result.is_error), result.content[0].text

        yield call


def test_a_source_that_is_declared_while_the_server_runs_is_known_to_it(tmp_path):
    for name in ("docs", "more"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.md").write_text(f"# {name}\n\nPumps and valves.\n")
    declared = '[[source]]\nkind = "library"\npath = "{}"\n'
    (tmp_path / "docindex.toml").write_text(declared.format("docs"))
    index_all(tmp_path)

    async def run() -> list[str]:
        async with Client(stdio_client(server(tmp_path))) as client:
            await client.call_tool("search", {"query": "pumps"})
            (tmp_path / "docindex.toml").write_text(declared.format("docs") + declared.format("more"))
            await anyio.to_thread.run_sync(index_all, tmp_path)
            answers = [await client.call_tool("status", {}), await client.call_tool("why", {"path": "more/more.md"})]
        return [answer.content[0].text for answer in answers]

    status, why = anyio.run(run)

    assert "library/more: ok; 1 files" in status
    assert "will be indexed" in why


def write_revision(root: Path, number: int) -> None:
    """Atomically replace a page whose sections each name its revision."""
    sections = "\n\n".join(f"## Part {at}\n\n" + f"part {at} of revision {number}. " * 60 for at in range(SECTIONS))
    (root / "page.tmp").write_text(sections)
    (root / "page.tmp").replace(root / "docs" / "page.md")


def test_while_runs_publish_every_answer_is_of_one_revision_and_the_last_one_is_found(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docindex.toml").write_text('[[source]]\nkind = "library"\npath = "docs"\n')
    write_revision(tmp_path, 0)
    index_all(tmp_path)
    is_over = threading.Event()
    last = 0

    def publish() -> None:
        nonlocal last
        while not is_over.is_set() or last < 3:
            write_revision(tmp_path, last + 1)
            index_all(tmp_path)
            last += 1

    publisher = threading.Thread(target=publish)
    calls: list[tuple[str, dict[str, Any]]] = [
        ("show", {"reference": "page.md"}),
        ("search", {"query": "part of revision", "top_k": 50}),
    ] * 20

    async def run() -> list[Any]:
        async with Client(stdio_client(server(tmp_path))) as client:
            publisher.start()
            try:
                during = [await client.call_tool(*call) for call in calls]
            finally:
                is_over.set()
                await anyio.to_thread.run_sync(publisher.join)
            return [*during, await client.call_tool(*calls[0])]

    *during, after = anyio.run(run)

    assert not [answer.content[0].text for answer in during if answer.is_error]
    for answer in during:
        assert len(set(revisions(answer.content[0].text))) == 1
    assert set(revisions(after.content[0].text)) == {str(last)}
    assert last >= 3


def revisions(text: str) -> list[str]:
    return re.findall(r"revision (\d+)", text)


def test_without_a_project_it_answers_and_each_tool_says_what_to_do(tmp_path, root):
    outside = tmp_path / "outside"
    outside.mkdir()
    calls: list[tuple[str, dict[str, Any]]] = [
        ("search", {"query": "pump"}),
        ("status", {}),
        ("show", {"reference": "a.md"}),
        ("log", {}),
    ]

    answers = Agent(outside).ask(*calls)

    for (name, _), (is_error, text) in zip(calls, answers, strict=True):
        assert is_error, name
        assert "no project found" in text
        assert "docindex init" in text


def test_a_project_that_begins_later_is_found(tmp_path):
    async def run() -> list[str]:
        async with Client(stdio_client(server(tmp_path))) as client:
            before = await client.call_tool("search", {"query": "pump"})
            (tmp_path / "docs").mkdir()
            (tmp_path / "docs" / "pump.md").write_text("# Pumps\n\nOpen the valve first.\n")
            (tmp_path / "docindex.toml").write_text('[[source]]\nkind = "library"\npath = "docs"\n')
            index_all(tmp_path)
            after = await client.call_tool("search", {"query": "pump"})
        return [before.content[0].text, after.content[0].text]

    before, after = anyio.run(run)

    assert "no project found" in before
    assert "pump.md" in after


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_a_message_may_begin_with_a_byte_order_mark(root, mark):
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    message = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": params}).encode()
    command = server(root)

    answer = subprocess.run(
        [command.command, *command.args], cwd=root, input=mark + message + b"\n", capture_output=True, check=True
    ).stdout

    assert json.loads(answer.splitlines()[0])["id"] == 7


@given(st.lists(st.sampled_from(["\\\\", "\\ud800", "\\uDC00", "\\u0041", "\\n", "x", "ud800", "\\ud83d\\ude00"])))
def test_a_line_of_json_keeps_its_characters_but_for_surrogates_that_stand_alone(parts):
    line = f'{{"text": "{"".join(parts)}"}}'

    made = json.loads(well_formed(line.encode()))["text"]

    lone = re.compile("[\ud800-\udfff]")
    assert made == lone.sub("\ufffd", json.loads(line)["text"])


_MANY = "7" * 5000


@pytest.mark.parametrize(
    ("number", "as_read"),
    [
        (f"0.{_MANY}", f"0.{_MANY}"),
        (f"1e-{_MANY}", f"1e-{_MANY}"),
        (f"-{_MANY}", "-1e400"),
        (f"{_MANY}.5e+7", "1e400"),
        (f'"{_MANY}"', f'"{_MANY}"'),
    ],
    ids=["a fraction", "an exponent", "a long number", "a long number with fraction and exponent", "a string"],
)
def test_a_line_of_json_keeps_its_numbers_but_for_those_that_cannot_be_read(number, as_read):
    line = f'{{"depth": {number}, "k": 5}}'

    made = well_formed(line.encode()).decode()

    assert made == line.replace(number, as_read)
    json.loads(made)


@pytest.mark.parametrize(
    ("symbol", "depth", "answer"),
    [('"x\\ud800"', "1", "'x\ufffd' not found in the graph"), ('"x"', "9" * 5000, "should be a finite number")],
    ids=["half a character", "a long number"],
)
def test_an_argument_that_the_library_cannot_read_is_answered(root, symbol, depth, answer):
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    asked = f'{{"question": "callers", "symbol": {symbol}, "depth": {depth}}}'
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
        json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        f'{{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {{"name": "graph", "arguments": {asked}}}}}',
    ]
    with subprocess.Popen(
        [sys.executable, "-m", "docindex_dagster.cli", "mcp"], cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        process.stdin.write("\n".join([*lines, ""]).encode())
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.stdin.close()

    assert answer in answers[1]["result"]["content"][0]["text"]


def test_an_answer_that_is_not_close_says_so_before_its_results(agent):
    (_, far), (_, near) = agent.ask(
        ("search", {"query": "how do I configure the kafka connector"}), ("search", {"query": "how is a pump started"})
    )

    assert far.startswith('Note: nothing here is close to the query: "')
    assert "not occur in the searched sources" in far
    assert "pump.md" in far
    assert "nothing here is close" not in near
