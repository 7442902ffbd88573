"""Tests of the tool with which agents record what answered a question, called by a real client in this process."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from docindex_dagster.cli import dagster_runs
from docindex_dagster.core.settings import load_settings
from docindex_dagster.core.tokenizer import count_tokens
from docindex_dagster.search.live_index import Live
from docindex_dagster.serving.mcp_server import server
from docindex_dagster.serving.tools import CollectingTools, Tools
from tests.serving.test_mcp import TOOLS, index_all

DECLARED = '[[source]]\nkind = "library"\npath = "docs"\n\n[[source]]\nkind = "library"\npath = "more"\n'
NOTED = {"question": "how does a pump start", "place": "docs/pump.md:5"}


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("collecting")
    for folder in ("docs", "more"):
        (root / folder).mkdir()
        (root / folder / "pump.md").write_text(f"# Pumps of {folder}\n\n## Start\n\nOpen the valve, then start it.\n")
    (root / "docindex.toml").write_text(DECLARED)
    index_all(root)
    return root


@pytest.fixture
def root(indexed: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the collecting project with no records, as the current directory."""
    (indexed / "docindex.toml").write_text(f"[evaluation]\ncollect = true\n\n{DECLARED}")
    (indexed / ".docindex" / "questions.jsonl").unlink(missing_ok=True)
    monkeypatch.chdir(indexed)
    return indexed


def asked(root: Path, *calls: dict[str, Any]) -> tuple[Any, list[tuple[bool, str]]]:
    """Return the server's instructions and tools, and the results of calls to `note_answer`."""
    live = Live(load_settings(root))

    async def run() -> tuple[Any, list[tuple[bool, str]]]:
        async with Client(server(Tools(live, dagster_runs.outcomes), None, CollectingTools.of(live))) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            results = [await client.call_tool("note_answer", arguments) for arguments in calls]
            answers = [(bool(result.is_error), result.content[0].text) for result in results]
            return (client.instructions, tools), answers

    return anyio.run(run)


def records(root: Path) -> list[dict[str, object]]:
    file = root / ".docindex" / "questions.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def test_the_tool_is_there_where_questions_are_collected_and_says_that_it_writes(root):
    (instructions, tools), _ = asked(root)

    tool = tools["note_answer"]
    assert set(tools) == {*TOOLS, "note_answer"}
    assert (tool.annotations.read_only_hint, tool.annotations.destructive_hint) == (False, False)
    assert tool.annotations.idempotent_hint
    assert all("description" in argument for argument in tool.input_schema["properties"].values())
    assert count_tokens([f"{tool.description}{json.dumps(tool.input_schema)}"])[0] < 500
    assert "`note_answer`" in instructions


def test_elsewhere_there_is_none_and_nothing_is_noted(root):
    (root / "docindex.toml").write_text(DECLARED)

    (instructions, tools), [(is_error, text)] = asked(root, NOTED)

    assert set(tools) == TOOLS
    assert "note" not in instructions
    assert is_error
    assert "tool 'note_answer' not found" in text
    assert records(root) == []


def test_an_agent_notes_what_answered_and_takes_it_back(root):
    _, answers = asked(root, NOTED, NOTED, {**NOTED, "place": "pump.md:1-5", "source": "more"})
    noted = records(root)
    _, taken = asked(root, {**NOTED, "answers": False}, {**NOTED, "answers": False})

    assert answers == [
        (False, 'Recorded: pump.md:5 of library/docs answers "how does a pump start".'),
        (False, 'Already recorded: pump.md:5 of library/docs answers "how does a pump start".'),
        (False, 'Recorded: pump.md:1-5 of library/more answers "how does a pump start".'),
    ]
    assert [(one["path"], one["source"], one["origin"]) for one in noted] == [
        ("pump.md:5", "library/docs", "mcp"),
        ("pump.md:1-5", "library/more", "mcp"),
    ]
    assert [text.partition(":")[0] for _, text in taken] == ["Removed", "Not recorded"]
    assert len(records(root)) == 1


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"place": "pump.md:5"}, "pump.md:5 is ambiguous: it is in library/docs and library/more"),
        ({"place": "nowhere.md"}, "no indexed chunk is named"),
        ({"place": "\0"}, "no indexed chunk is named"),
        ({"source": "nowhere"}, "source 'nowhere' not found"),
        ({"question": " "}, "the question is empty"),
        ({"question": "x" * 2001}, "should have at most 2000 characters"),
        ({"answer": True}, "note_answer has no argument 'answer'"),
    ],
)
def test_a_mistake_is_reported_in_words(root, arguments, problem):
    _, [(is_error, text)] = asked(root, {**NOTED, **arguments})

    assert is_error
    assert problem in text
    assert records(root) == []


def test_settings_that_forbid_it_later_are_obeyed(root):
    live = Live(load_settings(root))
    tools = CollectingTools.of(live)
    (root / "docindex.toml").write_text(DECLARED)

    async def run() -> Any:
        async with Client(server(Tools(live, dagster_runs.outcomes), None, tools)) as client:
            return await client.call_tool("note_answer", NOTED)

    result = anyio.run(run)

    assert result.is_error
    assert "set evaluation.collect = true" in result.content[0].text
    assert records(root) == []
