"""Tests that tool answers stay within the agent's token budget, report what was omitted, and give a cursor to it."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docindex_dagster.core.settings import load_settings
from docindex_dagster.core.tokenizer import count_tokens
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.render import budget
from docindex_dagster.runner.run import index
from docindex_dagster.search.live_index import Live
from docindex_dagster.serving.tools import Tools
from docindex_dagster.sources import registry
from tests.serving.http.conftest import git

CALLERS = 120
COMMITS = 30
CURSOR = re.compile(r'cursor "(\d+)"')


@pytest.fixture(scope="module")
def tools(tmp_path_factory) -> Tools:
    """Return the tools of a project with many callers, sections, sources and warnings, and long lines and names."""
    root: Path = tmp_path_factory.mktemp("large")
    (root / "plant").mkdir()
    callers = "\n\n\n".join(
        f"def start_of_the_{at}th_pump():\n    pump({at})\n    return pump({at})" for at in range(CALLERS)
    )
    (root / "plant" / "pumps.py").write_text(f"def pump(number):\n    return number\n\n\n{callers}\n")
    (root / "plant" / "test_pumps.py").write_text(
        "from pumps import pump\n\n\ndef test_pump():\n    assert pump(1) == 1\n"
    )
    sections = "\n\n".join(
        f"## Valve {at}\n\n" + f"Valve {at} is opened before the pump starts. " * 20 for at in range(60)
    )
    (root / "plant" / "manual.md").write_text(f"# Manual\n\n{sections}\n")
    (root / "plant" / "long.md").write_text(f"# Long\n\n{'lengthy' * 3000} valve\n\n```\n{'`' * 5} fence\n```\n")
    (root / "plant" / f"{'deep ' * 40}valve.md").write_text(f"# {'Heading ' * 200}\n\nA valve of a deep page.\n")
    declared = ['[[source]]\nkind = "library"\npath = "plant"\n']
    for at in range(150):
        (root / f"other{at}").mkdir()
        declared.append(f'[[source]]\nkind = "library"\npath = "other{at}"\n')
    declared.append('[[source]]\nkind = "git"\npath = "works"\n')
    write_history(root / "works")
    (root / "docindex.toml").write_text("".join(declared))
    settings = load_settings(root)
    for key in ("library/plant", "git/works"):
        index(settings, registry.sources(settings)[key], StaticEmbedder())
    return Tools(Live(settings), lambda _: {})


def write_history(works: Path) -> None:
    """Create commits with many files each, whose subjects imitate other output."""
    works.mkdir()
    git(works, "init", "-q")
    for at in range(COMMITS):
        for file in range(12):
            (works / f"wheel{file}.txt").write_text(f"In its position {at}.\n")
        git(works, "add", ".")
        git(works, "commit", "-q", "-m", f"Turn the wheel to {at}\u202e\n\n   | No line of an answer.")
    git(works, "mv", "wheel0.txt", "cog.txt")
    git(works, "commit", "-q", "-m", "Say what kind of wheel it is")


CALLS: dict[str, Callable[..., Callable[[Tools], str]]] = {
    "search": lambda **given: lambda tools: tools.search(query="how is a valve opened", top_k=50, **given),
    "matches": lambda **given: lambda tools: tools.search(query="return pump", mode="literal", top_k=50, **given),
    "files": lambda **given: lambda tools: tools.search(query="valve", granularity="file", mode="literal", **given),
    "far": lambda **given: lambda tools: tools.search(query="kafka connector zookeeper " * 200, **given),
    "similar": lambda **given: lambda tools: tools.find_similar(place="manual.md:5", same_file=True, top_k=50, **given),
    "context": lambda **given: lambda tools: tools.context(query="how is a valve opened", **given),
    "file": lambda **given: lambda tools: tools.show(reference="manual.md", **given),
    "long line": lambda **given: lambda tools: tools.show(reference="long.md", **given),
    "callers": lambda **given: lambda tools: tools.graph("callers", symbol="pump", **given),
    "neighbors": lambda **given: lambda tools: tools.graph("neighbors", symbol="pump", depth=3, **given),
    "stats": lambda **given: lambda tools: tools.graph("stats", **given),
    "commits": lambda **given: lambda tools: tools.log(top_k=50, **given),
    "status": lambda **given: lambda tools: tools.status(**given),
}
PAGED = [name for name in CALLS if name not in {"context", "stats", "far", "files"}]


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("tokens", [budget.LEAST, 700, budget.DEFAULT])
def test_no_answer_has_more_tokens_than_were_allowed(tools, name, tokens):
    text = CALLS[name](max_tokens=tokens)(tools)

    assert 0 < count_tokens([text])[0] <= tokens


@pytest.mark.parametrize("name", PAGED)
def test_without_a_budget_two_thousand_tokens_are_the_most(tools, name):
    text = CALLS[name]()(tools)

    assert 0 < count_tokens([text])[0] <= 2000
    assert CURSOR.search(text)


def pages(tools: Tools, name: str, tokens: int) -> list[str]:
    """Return every page of a tool's answer."""
    found: list[str] = [CALLS[name](max_tokens=tokens)(tools)]
    while cursor := CURSOR.search(found[-1]):
        found.append(CALLS[name](max_tokens=tokens, cursor=cursor[1])(tools))
        assert len(found) < 2000
    return found


def test_the_cursor_leads_through_all_callers_and_to_none_of_them_twice(tools):
    text = "\n".join(pages(tools, "callers", 500))

    found = re.findall(r"start_of_the_(\d+)th_pump", text)
    assert sorted(map(int, found)) == list(range(CALLERS))


def test_the_cursor_leads_through_every_commit(tools):
    text = "\n".join(pages(tools, "commits", 500))

    found = re.findall(r"^   \| Turn the wheel to (\d+)", text, re.MULTILINE)
    assert [*map(int, found)] == [*reversed(range(COMMITS))]


def test_a_commit_is_its_hash_date_author_subject_and_files_and_no_address(tools):
    first, second, *_ = tools.log(top_k=2, max_tokens=2000).split("\n\n")

    assert re.fullmatch(
        r"git/works [0-9a-f]{10} \d{4}-\d\d-\d\d by Ada \(1 file \+0 -0\)\n"
        r"   \| Say what kind of wheel it is\n"
        r"   R cog\.txt \(was wheel0\.txt\) \+0 -0",
        first,
    )
    assert "   | Turn the wheel to 29\ufffd\n   M wheel0.txt +1 -1\n" in second
    assert second.endswith("\n   and 2 more files")
    assert "@" not in tools.log(author="ada@example.com", top_k=50, max_tokens=20_000)


def test_commits_are_narrowed_by_query_author_date_path_and_source(tools):
    assert tools.log(query="what kind of wheel", top_k=1).count("\n   | Say what kind of wheel it is\n") == 1
    assert tools.log(path="cog.txt").count("   | ") == 1
    for narrowed in ({"author": "grace"}, {"since": datetime(2100, 1, 1, tzinfo=UTC)}, {"sources": ["plant"]}):
        assert tools.log(**narrowed) == "No commits found. Try other words or fewer filters."


def test_the_cursor_leads_through_every_line_of_a_file(tools):
    text = "\n".join(pages(tools, "file", 500))

    found = [int(number) for number in re.findall(r"^## Valve (\d+)$", text, re.MULTILINE)]
    assert found == list(range(60))


def test_the_cursor_leads_through_every_source(tools):
    text = "\n".join(pages(tools, "status", 500))

    found = re.findall(r"^- (library/\w+):", text, re.MULTILINE)
    assert sorted(found) == sorted(["library/plant", *(f"library/other{at}" for at in range(150))])


def test_the_cursor_leads_through_more_results_than_were_asked_for(tools):
    found: list[tuple[str, str]] = []
    cursor = None
    for _ in range(4):
        text = tools.search(query="valve", top_k=5, cursor=cursor)
        found += re.findall(r"^(\d+)\. (library/plant .*?:\d+) ", text, re.MULTILINE)
        cursor = CURSOR.search(text)[1]

    assert [int(rank) for rank, _ in found] == list(range(1, 21))
    assert len(set(found)) == 20


def test_the_cursor_leads_through_every_match_in_its_order(tools):
    text = "\n".join(pages(tools, "matches", 700))

    (total,) = {int(number.replace(",", "")) for number in re.findall(r"^([\d,]+) matches in", text, re.MULTILINE)}
    file, found = "", []
    for line in text.splitlines():
        file = line if line.startswith("library/plant ") else file
        found += [(file, *map(int, place)) for place in re.findall(r"^   (\d+):(\d+) \|", line)]
    assert len(found) == total
    assert found == sorted(set(found))


def test_what_is_behind_the_last_answer_is_reported(tools):
    assert "There are no more results." in tools.search(query="valve", cursor="5000")
    assert "There are no more edges." in tools.graph("callers", symbol="pump", cursor="5000")
    assert "There are no more lines." in tools.show(reference="manual.md", cursor="50000")
    assert "There are no more results." in tools.log(cursor="5000")
    assert "There are no more sources." in tools.status(cursor="5000")


def test_a_test_that_calls_what_it_tests_is_one_line(tools):
    lines = tools.graph("neighbors", symbol="pump", max_tokens=20_000).splitlines()

    assert [line for line in lines if "test_pump " in line] == [
        "library/plant!test_pumps.py::test_pump -calls-> library/plant!pumps.py::pump (test_pumps.py:5; imported name)"
    ]


@pytest.mark.parametrize(
    ("argument", "one"),
    [("sources", "plant"), ("languages", "markdown"), ("types", "doc"), ("kinds", "function")],
)
def test_a_single_name_is_taken_where_a_list_is_meant(tmp_path, tools, argument, one):
    import anyio
    from mcp import Client

    from docindex_dagster.serving.mcp_server import server

    async def ask() -> Any:
        async with Client(server(tools)) as client:
            calls = [{"query": "valve pump", argument: given} for given in (one, [one])]
            return [await client.call_tool("search", call) for call in calls]

    single, listed = anyio.run(ask)

    assert not single.is_error
    assert single.content[0].text == listed.content[0].text


def test_text_cannot_leave_its_fence(tools):
    text = tools.show(reference="long.md", max_tokens=20_000)

    fences = re.findall(r"^(`{3,})", text, re.MULTILINE)
    assert max(map(len, fences)) > 5
    for opening, closing in re.findall(r"(?ms)^(`{6,})markdown$.*?^(`+)$", text):
        assert len(closing) < len(opening) or closing == opening


@given(
    parts=st.lists(st.text("ab \n`~", max_size=300), max_size=30),
    notes=st.lists(st.text("xy ", max_size=200), max_size=3),
    tokens=st.integers(budget.LEAST, 600),
)
def test_parts_that_are_given_fit_and_the_others_are_counted(parts, notes, tokens):
    shown: list[int] = []

    def more(count: int) -> str:
        shown.append(count)
        return f'{len(parts) - count} more; continue with cursor "{count}".' if count < len(parts) else ""

    text = budget.fit_parts(notes, parts, tokens, more)

    assert count_tokens([text])[0] <= tokens
    assert shown[0] >= min(1, len(parts))
    if shown[0] == len(parts) and sum(map(len, parts)) < 100:
        assert all(part in text for part in parts)
