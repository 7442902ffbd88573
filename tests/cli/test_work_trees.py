"""In a linked worktree below the project, answers come from that worktree or say that they do not."""

import json
import shutil
from pathlib import Path

import pytest

from docindex_dagster.search.live_index import Live
from docindex_dagster.serving.tools import Tools
from docindex_dagster.sources.projects import choose
from tests.cli.conftest import Run

NAME = "def prime_pump():\n    return {}\n\n\ndef start_{}():\n    return prime_pump()\n"


@pytest.fixture(params=[".claude/worktrees/x", ".worktrees/y", "trees/deep/z", "../beside"])
def tree(run, tmp_path, git, monkeypatch, request) -> Path:
    """An indexed repository, and a linked worktree with different text as the working directory."""
    shutil.rmtree("manual")
    root = tmp_path / "service"
    (root / "src").mkdir(parents=True)
    (root / "src/pump.py").write_text(NAME.format("'the main checkout'", "main"))
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "Add the pump")
    monkeypatch.chdir(root)
    assert run("index", ".").code == 0
    linked: Path = root / request.param
    git(root, "worktree", "add", "-q", "-b", "feature", str(linked))
    (linked / "src/pump.py").write_text(NAME.format("'the linked tree'", "linked"))
    (linked / "src/valve.py").write_text("def open_valve():\n    return 'a valve of the linked tree'\n")
    monkeypatch.chdir(linked)
    if request.param.startswith(".."):
        monkeypatch.setenv("DOCINDEX_ROOT", str(root))
    return linked


COMMANDS = (
    ["search", "prime_pump", "--path", "src"],
    ["search", "prime_pump"],
    ["search", "-m", "literal", "return"],
    ["ask", "what does prime_pump return", "--no-llm"],
    ["show", "src/pump.py"],
    ["show", "prime_pump"],
    ["similar", "src/pump.py:1", "--same-file"],
    ["graph", "callers", "prime_pump"],
    ["graph", "callers", "src/pump.py:1"],
)


def tools(folder: Path | None) -> Tools:
    return Tools(Live(choose().settings()), lambda _: {}, folder)


def calls(asked: Tools) -> dict[str, str]:
    return {
        "search": asked.search(query="prime_pump"),
        "literal": asked.search(query="return", mode="literal"),
        "context": asked.context(query="prime_pump"),
        "show": asked.show(reference="prime_pump"),
        "graph": asked.graph("callers", symbol="prime_pump"),
    }


def test_until_the_tree_is_indexed_each_answer_says_that_it_is_of_the_main_checkout(run: Run, tree):
    warning = f"`docindex index {tree.resolve()}` indexes this worktree"
    for command in COMMANDS[1:4]:
        assert (command, warning in run(*command).err) == (command, True)
    assert warning in run("graph", "callers", "prime_pump").err
    assert warning in run("log").err
    for name, answer in {**calls(tools(tree)), "log": tools(tree).log()}.items():
        assert (name, warning in answer) == (name, True)
    assert warning not in tools(None).search(query="prime_pump")
    assert "git/service" not in run("why", "src/valve.py").out


def test_once_it_is_indexed_answers_come_from_it(run: Run, tree):
    assert run("index", ".").code == 0
    assert "git/service@feature" in run("status").out

    for command in COMMANDS:
        found = run(*command)
        assert (command, "main" in found.out, found.code) == (command, False, 0)
        assert (command, "the worktree" in found.err) == (command, False)
    for name, answer in calls(tools(tree)).items():
        assert (name, "main" in answer, "linked" in answer) == (name, False, True)
    assert "a valve of the linked tree" in run("show", "src/valve.py").out
    assert "git/service@feature" in run("why", "src/valve.py").out

    assert "'the main checkout'" in run("show", "git/service src/pump.py").out
    sources = {hit["source"] for hit in json.loads(run("search", "prime_pump", "--all", "--json").out)}
    assert sources == {"git/service", "git/service@feature"}


def test_the_warning_names_the_source_that_answers_and_no_other_tree(run: Run, tree, git, monkeypatch):
    assert run("index", ".").code == 0
    other = tree.parent / "other"
    git(tree, "worktree", "add", "-q", "-b", "other", str(other))
    monkeypatch.chdir(other)
    assert "git/service is indexed there" in run("search", "prime_pump").err


def test_the_main_checkout_and_folders_outside_answer_as_ever(run: Run, tree, monkeypatch, tmp_path):
    assert run("index", ".").code == 0
    root = tmp_path / "service"
    monkeypatch.setenv("DOCINDEX_ROOT", str(root))
    for folder in (root, root / "src", tmp_path):
        monkeypatch.chdir(folder)
        assert "the main checkout" in run("search", "prime_pump", "-k", "1").out
        assert "the linked tree" not in run("search", "-m", "literal", "return").out
