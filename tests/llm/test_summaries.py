"""Summaries end to end: a real index, and an LLM behind HTTP."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from docindex_dagster.core import tables
from docindex_dagster.core.events import Event, Notice, Progress, listening
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import CONFIG_NAME, Settings, load_settings
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.pipeline.up_to_date import is_current
from docindex_dagster.runner.run import index
from docindex_dagster.search.engine import search
from docindex_dagster.search.model import Hit, Mode
from docindex_dagster.sources import registry
from docindex_dagster.stores.reader import open_reader
from tests.incremental.contents import difference, from_nothing, stores_of, tables_of
from tests.llm.server import KEY, LlmServer, unused_url

KEY_OF_SOURCE = "library/files"
PUMP, VALVE, TANK = "pump.py", "valve.py", "tank.md"
# None of the words of these summaries occurs in the files.
SUMMARIES = {
    PUMP: "Irrigates the greenhouse with a hydraulic impeller.",
    VALVE: "Prevents flooding by shutting a solenoid.",
    TANK: "Explains how the reservoir is desalinated.",
}


def function(name: str, word: str, size: int = 240) -> str:
    body = f'def {name}(amount: int) -> int:\n    """Handle the {word}."""\n'
    while len(body) < size:
        body += f"    amount = step_of_{name}(amount)\n"
    return body + "    return amount\n"


@dataclass(slots=True)
class Project:
    """A library of three files, each a single chunk, whose settings name an LLM."""

    root: Path
    llm: LlmServer
    summaries: str = "enabled = true"
    llm_options: str = "concurrency = 2\ntimeout_s = 2\nretries = 0"
    sources: str = 'kind = "library"\npath = "files"'
    events: list[Event] = field(default_factory=list)

    @property
    def files(self) -> Path:
        return self.root / "files"

    @property
    def settings(self) -> Settings:
        of_llm = f'[llm]\nprovider = "openai"\nmodel = "small-1"\nbase_url = "{self.llm.url}"\n{self.llm_options}\n'
        (self.root / CONFIG_NAME).write_text(f"[[source]]\n{self.sources}\n{of_llm}[summaries]\n{self.summaries}\n")
        return load_settings(self.root)

    @property
    def layout(self) -> Layout:
        return Layout(self.settings.home)

    def write(self, name: str, text: str) -> None:
        (self.files / name).write_text(text)

    def index(self, *, full: bool = False) -> list[str]:
        """Index and return the texts sent to the LLM."""
        before = len(self.llm.asked)
        settings = self.settings
        self.events.clear()
        with listening(self.events.append):
            index(settings, registry.find(settings, KEY_OF_SOURCE), StaticEmbedder(), full=full)
        return self.llm.pieces[before:]

    @property
    def notices(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, Notice)]

    @property
    def written(self) -> dict[str, str | None]:
        """The summary of each file's first chunk in the table."""
        table = tables.read(self.layout.table("chunks", KEY_OF_SOURCE))
        return {row["path"]: row["summary"] for row in reversed(table.to_pylist())}

    @property
    def is_current(self) -> bool:
        settings = self.settings
        return is_current(settings, registry.find(settings, KEY_OF_SOURCE))

    def search(self, query: str, mode: Mode) -> list[Hit]:
        return search(open_reader(self.layout), query, StaticEmbedder, mode=mode)

    def assert_as_from_nothing(self) -> None:
        """Check that the index equals a full build with the same answers."""
        settings = self.settings
        made = from_nothing(settings, [registry.find(settings, KEY_OF_SOURCE)], self.root / "again")
        assert difference(tables_of(self.layout, [KEY_OF_SOURCE]) | stores_of(self.layout), made) == ""


def summary_of(piece: str) -> str:
    """Return a summary based on the file name in the header."""
    name = piece.split(maxsplit=1)[0]
    return SUMMARIES.get(name, f"Deals with {name}.")


@pytest.fixture
def project(tmp_path, llm, monkeypatch) -> Project:
    monkeypatch.setenv("DOCINDEX_LLM__API_KEY", KEY)
    monkeypatch.delenv("DOCINDEX_HOME", raising=False)
    llm.write = summary_of
    made = Project(tmp_path, llm)
    made.files.mkdir()
    made.write(PUMP, function("push", "water"))
    made.write(VALVE, function("shut", "flow"))
    made.write(TANK, "# Tank\n\n" + "The tank holds what was pumped. " * 10)
    return made


# Enabling and disabling.


def test_off_is_the_default_and_asks_nobody(project):
    project.summaries = ""

    assert project.index() == []
    assert set(project.written.values()) == {None}
    assert not project.layout.summaries(KEY_OF_SOURCE).exists()


def test_every_chunk_gets_its_summary_under_its_header(project):
    asked = project.index()

    assert project.written == SUMMARIES
    assert sorted(piece.splitlines()[0] for piece in asked) == [
        "pump.py push function",
        "tank.md Tank",
        "valve.py shut function",
    ]
    assert set(project.llm.keys) == {f"Bearer {KEY}"}
    assert project.is_current
    assert Progress(KEY_OF_SOURCE, "summaries", 3, 3, "chunks") in project.events


@pytest.mark.parametrize("mode", [Mode.BM25, Mode.VECTOR, Mode.HYBRID])
@pytest.mark.parametrize(
    ("query", "name"), [("hydraulic impeller", PUMP), ("solenoid flooding", VALVE), ("desalinated reservoir", TANK)]
)
def test_a_chunk_is_found_by_words_that_its_summary_alone_has(project, mode, query, name):
    project.index()

    best = project.search(query, mode)[0]
    assert (best.path, best.summary) == (name, SUMMARIES[name])
    assert not set(query.split()) & set(best.text.split())


def test_without_them_nothing_is_found_by_these_words(project):
    project.summaries = ""
    project.index()

    assert project.search("hydraulic impeller", Mode.BM25) == []


def test_short_chunks_tests_settings_and_what_else_is_not_wanted_cost_nothing(project):
    project.write("short.py", "x = 1\n")
    project.write("test_pump.py", function("test_push", "water"))
    project.write("conf.toml", "[pump]\n" + "speed = 1  # turns a second\n" * 20)
    project.index()

    written = project.written
    assert {name for name, text in written.items() if text} == set(SUMMARIES)

    project.summaries = 'enabled = true\nsource_types = ["test"]\nmin_chars = 0'
    assert [piece.split()[0] for piece in project.index()] == ["test_pump.py"]
    assert project.written["test_pump.py"] == "Deals with test_pump.py."
    assert project.written[PUMP] is None


# Cached summaries.


def test_a_second_run_and_a_full_one_ask_nothing(project):
    project.index()
    assert project.index() == []
    assert project.index(full=True) == []
    assert project.written == SUMMARIES


def test_an_edit_of_one_function_asks_about_that_one(project):
    both = function("push", "water", 1200), function("pull", "water", 1200)
    project.write(PUMP, "\n\n".join(both))
    assert len(project.index()) == 4

    project.write(PUMP, "\n\n".join([both[0], function("pull", "air", 1200)]))
    assert [piece.splitlines()[0] for piece in project.index()] == ["pump.py pull function"]
    project.assert_as_from_nothing()


def test_what_comes_back_is_not_asked_about_again(project):
    before = project.files.joinpath(PUMP).read_text()
    project.index()
    project.write(PUMP, function("push", "air"))
    assert len(project.index()) == 1

    project.write(PUMP, before)
    assert project.index() == []
    assert project.written[PUMP] == SUMMARIES[PUMP]


def test_switched_off_they_leave_and_switched_on_they_come_back_unasked(project):
    project.index()
    project.summaries = ""
    assert not project.is_current
    project.index()
    assert set(project.written.values()) == {None}
    assert project.search("impeller", Mode.BM25) == []
    project.assert_as_from_nothing()

    project.summaries = "enabled = true"
    assert not project.is_current
    assert project.index() == []
    assert project.written == SUMMARIES


@pytest.mark.parametrize(
    ("variable", "value"), [("DOCINDEX_LLM__MODEL", "small-2"), ("DOCINDEX_SUMMARIES__MAX_TOKENS", "60")]
)
def test_another_model_or_length_is_another_summary(project, monkeypatch, variable, value):
    project.index()
    monkeypatch.setenv(variable, value)

    assert not project.is_current
    assert len(project.index()) == 3


def test_another_endpoint_time_limit_or_budget_is_not(project):
    project.index()
    project.llm_options = "concurrency = 1\ntimeout_s = 9\nretries = 1"
    project.summaries = "enabled = true\nbudget_tokens = 5000"

    assert project.is_current
    assert project.index() == []


def test_branches_of_a_repository_share_them(project, git):
    git(project.files, "init", "--quiet")
    git(project.files, "add", ".")
    git(project.files, "commit", "--quiet", "--message", "files")
    git(project.files, "branch", "other")
    project.sources = f'kind = "git"\nname = "repo"\nurl = "{project.files.as_uri()}"\nbranches = ["other"]'
    settings = project.settings
    for key in ("git/repo", "git/repo@other"):
        index(settings, registry.find(settings, key), StaticEmbedder())

    assert len(project.llm.asked) == 3
    other = tables.read(Layout(settings.home).table("chunks", "git/repo@other")).to_pylist()
    assert {row["path"]: row["summary"] for row in other if row["source_type"] != "commit"} == SUMMARIES


# Budget.


def test_the_budget_of_a_run_is_kept_and_the_next_run_goes_on(project):
    for at in range(9):
        project.write(f"f{at}.py", function(f"f{at}", "water"))
    project.llm.usage = {"prompt_tokens": 900, "completion_tokens": 20}
    project.summaries = "enabled = true\nbudget_tokens = 4000"
    runs: list[int] = []
    while not runs or runs[-1]:
        runs.append(len(project.index()))
        assert runs[-1] * 920 <= 4000
        if sum(runs) < 12:
            assert f"{12 - sum(runs)} chunks have no summary yet: the budget of 4,000 tokens" in project.notices[0]
            assert not project.is_current

    assert runs == [4, 4, 4, 0]
    assert all(project.written.values())
    assert project.is_current
    assert project.notices == []
    project.summaries = "enabled = true"
    project.assert_as_from_nothing()


def test_what_is_under_way_counts_before_its_tokens_are_known(project):
    for at in range(20):
        project.write(f"f{at}.py", function(f"f{at}", "water"))
    project.llm_options = "concurrency = 16\ntimeout_s = 5\nretries = 0"
    project.llm.delay_s = 0.2
    project.llm.usage = {"prompt_tokens": 300, "completion_tokens": 100}
    project.summaries = "enabled = true\nbudget_tokens = 2000"

    assert 0 < len(project.index()) * 400 <= 2000


def test_a_server_that_tells_no_tokens_does_not_get_round_it(project):
    project.llm.usage = None
    project.summaries = "enabled = true\nbudget_tokens = 700"

    assert len(project.index()) == 1


def test_without_a_budget_those_that_are_there_stay(project):
    project.index()
    project.summaries = "enabled = true\nbudget_tokens = 0"
    project.write(PUMP, function("push", "air"))

    assert project.index() == []
    assert project.written == SUMMARIES | {PUMP: None}


def test_as_many_requests_are_under_way_as_the_settings_say(project):
    for at in range(12):
        project.write(f"f{at}.py", function(f"f{at}", "water"))
    project.llm_options = "concurrency = 3\ntimeout_s = 5\nretries = 0"
    project.llm.delay_s = 0.1
    project.index()

    assert project.llm.concurrency == 3


# Failures.


def index_is_complete(project: Project) -> bool:
    return {hit.path for hit in project.search("amount", Mode.BM25)} >= {PUMP, VALVE}


@contextmanager
def failing(llm: LlmServer, **how: Any) -> Iterator[None]:
    before = {name: getattr(llm, name) for name in how}
    for name, value in how.items():
        setattr(llm, name, value)
    yield
    for name, value in before.items():
        setattr(llm, name, value)


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"status": 401}, "rejected the key"),
        ({"status": 500}, "answered 500"),
        ({"reply": b"nonsense"}, "invalid completion"),
        ({"write": lambda _: " \n "}, "unusable answer"),
        ({"delay_s": 30.0}, "did not answer within"),
        ({"broken": b""}, "127.0.0.1"),
        ({"url": unused_url()}, "cannot be reached"),
    ],
    ids=["wrong key", "broken", "garbage", "empty", "hanging", "broken off", "down"],
)
def test_a_failing_llm_leaves_the_index_complete_and_is_asked_again_in_the_next_run(project, how, why):
    timeout_s = 0.3 if "delay_s" in how else 10.0
    project.llm_options = f"concurrency = 2\ntimeout_s = {timeout_s}\nretries = 0"
    with failing(project.llm, **how):
        started = time.monotonic()
        project.index()
        assert time.monotonic() - started < 20
        (notice,) = project.notices
        assert "3 chunks have no summary: " in notice
        assert why in notice
        assert notice.endswith("the next run retries")
        assert index_is_complete(project)
        assert not project.is_current
        assert set(project.written.values()) == {None}

    assert len(project.index()) == 3
    assert project.written == SUMMARIES
    assert project.notices == []
    assert project.is_current
    project.assert_as_from_nothing()


def test_after_a_few_failures_in_a_row_nothing_more_is_asked(project):
    for at in range(40):
        project.write(f"f{at:02}.py", function(f"f{at:02}", "water"))
    with failing(project.llm, status=500):
        assert len(project.index()) <= 6
        assert "43 chunks have no summary" in project.notices[0]

    assert len(project.index()) == 43


def test_those_that_always_fail_do_not_keep_the_others_from_their_summaries(project):
    for at in range(10):
        project.write(f"a{at}.py", function(f"poison{at}", "water"))
    project.llm.write = lambda piece: "" if "poison" in piece else summary_of(piece)
    runs = [project.index() for _ in range(3)]

    assert {name: project.written[name] for name in SUMMARIES} == SUMMARIES
    assert sum(len(asked) for asked in runs) < 25


def test_one_failure_costs_one_summary(project):
    project.llm.write = lambda piece: "" if piece.startswith(VALVE) else summary_of(piece)
    project.index()

    assert project.written == SUMMARIES | {VALVE: None}
    assert "1 chunk has no summary" in project.notices[0]


def test_what_it_writes_cannot_steer_a_terminal_nor_fill_the_index(project):
    project.llm.write = lambda _: "Fills\x1b[31m\nthe tank. " + "word " * 10_000
    project.index()

    assert all(len(text) <= 1000 and "\x1b" not in text and "\n" not in text for text in project.written.values())


def test_a_model_that_cannot_be_loaded_stops_no_run(project, monkeypatch):
    monkeypatch.setitem(sys.modules, "docindex_dagster.llm.anthropic", None)
    monkeypatch.setenv("DOCINDEX_LLM__PROVIDER", "anthropic")
    project.index()

    assert "cannot use the LLM provider 'anthropic': ModuleNotFoundError" in project.notices[0]
    assert index_is_complete(project)


# Killed runs.


SCRIPT = """
import sys
from pathlib import Path
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.runner.run import index
from docindex_dagster.core.settings import load_settings
from docindex_dagster.sources import registry
if __name__ == "__main__":
    settings = load_settings(Path(sys.argv[1]))
    index(settings, registry.find(settings, "library/files"), StaticEmbedder())
"""


@pytest.mark.kill
def test_a_run_that_is_killed_half_way_pays_for_nothing_twice(project, tmp_path):
    for at in range(30):
        project.write(f"f{at:02}.py", function(f"f{at:02}", "water"))
    project.llm_options = "concurrency = 1\ntimeout_s = 20\nretries = 0"
    project.llm.delay_s = 0.1
    script = tmp_path / "run.py"
    script.write_text(SCRIPT)
    assert project.settings
    run = subprocess.Popen([sys.executable, str(script), str(tmp_path)], start_new_session=True)
    until = time.monotonic() + 60
    while len(project.llm.asked) < 10 and time.monotonic() < until:
        time.sleep(0.01)
    os.killpg(run.pid, signal.SIGKILL)
    run.wait()
    project.llm.delay_s = 0
    paid_for = len(project.llm.asked)
    assert 10 <= paid_for < 33

    # The request in flight was not answered.
    assert len(project.index()) - (33 - paid_for) in {0, 1}
    assert all(project.written.values())
    project.assert_as_from_nothing()


def test_a_torn_line_costs_its_summary_alone(project):
    project.index()
    file = project.layout.summaries(KEY_OF_SOURCE)
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"\x00\xff garbage\n[1, 2]\n" + b"".join(lines)[:-20])

    assert len(project.index(full=True)) == 1
    assert project.index(full=True) == []
    assert project.written == SUMMARIES


# Keys.


def test_the_key_stands_nowhere_below_the_home(project, caplog, capfd):
    caplog.set_level("DEBUG")
    with failing(project.llm, status=401):
        project.index()
    project.index()

    files = [file for file in project.layout.home.rglob("*") if file.is_file()]
    assert len(files) > 10
    assert not [file for file in files if KEY.encode() in file.read_bytes()]
    assert KEY not in f"{caplog.text} {project.events} {capfd.readouterr()} {project.settings!r}"
