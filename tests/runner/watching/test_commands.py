"""Delegation of `docindex index` to a running watcher, with real sockets and, where they matter, real processes."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import ClassVar

import pytest

from docindex_dagster.cli import dagster_runs, watch, watch_client
from docindex_dagster.core import events
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import exclusive, holder
from docindex_dagster.core.settings import Settings, load_settings
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.runner import journal
from docindex_dagster.runner import run as pipeline
from docindex_dagster.runner.entries import State
from docindex_dagster.runner.watching.commands import Command, Commands, Listener
from docindex_dagster.runner.watching.folders import Notifier
from docindex_dagster.runner.watching.loop import Watch
from docindex_dagster.runner.watching.messages import (
    Answer,
    Ended,
    Refused,
    Request,
    Taken,
    encode_line,
    parse_answer,
    state_of,
)
from docindex_dagster.sources import registry, removed_sources

KEY = "library/notes"
STATE = "a state"
PATIENCE_S = 60
TOML = '[[source]]\nkind = "library"\npath = "notes"\n'


@pytest.fixture
def root(tmp_path: Path, monkeypatch) -> Path:
    for name in ("DAGSTER_HOME", "DOCINDEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/guide.md").write_text("# Guide\n\nThe pump moves water.\n")
    (tmp_path / "docindex.toml").write_text(TOML)
    return tmp_path


@pytest.fixture
def settings(root) -> Settings:
    return load_settings(root)


@pytest.fixture
def commands() -> Iterator[Commands]:
    with closing(Commands()) as made:
        made.set_state(STATE)
        yield made


@pytest.fixture(autouse=True)
def _clients_are_closed() -> Iterator[None]:
    yield
    for client in Client.opened:
        client.close()
    Client.opened.clear()


class Client:
    """Client that sends a request and reads the response."""

    opened: ClassVar[list["Client"]] = []

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.connection.settimeout(PATIENCE_S)
        self.lines = connection.makefile("rb")
        self.opened.append(self)

    def close(self) -> None:
        self.lines.close()
        self.connection.close()

    @classmethod
    def at(cls, path: Path) -> "Client":
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(path))
        return cls(connection)

    def write(self, line: bytes) -> None:
        self.connection.sendall(line)

    def next(self) -> Answer | None:
        line = self.lines.readline()
        return parse_answer(line) if line else None

    def rest(self) -> list[Answer]:
        return [parse_answer(line) for line in self.lines]


def waiting(commands: Commands, *sources: str, state: str = STATE) -> Client:
    """Queue a request for sources in this process and return its client."""
    ours, theirs = socket.socketpair()
    commands.take(Command(theirs, Request(state, sources)))
    return Client(ours)


def summary(key: str, **others: object) -> dict[str, object]:
    return {"source": key, "succeeded": True, "changed": 0, **others}


def test_a_request_is_taken_and_answered_source_by_source(tmp_path, commands):
    with closing(Listener(tmp_path / "watch.sock", commands)):
        client = Client.at(tmp_path / "watch.sock")
        client.write(encode_line(Request(STATE, ("library/a", "library/b"))))
        assert client.next() == Taken()
        command = commands.first()
        assert command.left == ["library/a", "library/b"]

        with commands.running("library/a"):
            events.emit(events.Progress("library/a", "chunks", 1, 2, "files"))
        commands.answer(command, summary("library/a"))
        commands.answer(command, summary("library/b"))

        assert client.rest() == [
            events.Progress("library/a", "chunks", 1, 2, "files"),
            Ended(summary("library/a")),
            Ended(summary("library/b")),
        ]
    assert commands.first() is None


@pytest.mark.parametrize(
    "line",
    [
        b"hello\n",
        b"\xff\xfe\n",
        b"[" * 100_000 + b"\n",
        b"{}\n",
        b'{"Request": {"state": 1, "sources": ["library/notes"]}}\n',
        b'{"Request": {"state": "a state", "sources": []}}\n',
        b'{"Request": {"state": "a state", "sources": "library/notes"}}\n',
        b'{"Request": {"state": "a state", "sources": ["library/notes"], "full": true}}\n',
        b'{"Request": {"state": "another", "sources": ["library/notes"]}}\n',
        b'{"Ended": {"summary": {}}}\n',
        b"x" * (1 << 20) + b"y" * (1 << 18),
    ],
)
def test_a_wrong_request_is_refused_and_the_next_one_is_taken(tmp_path, commands, line):
    with closing(Listener(tmp_path / "watch.sock", commands)):
        wrong = Client.at(tmp_path / "watch.sock")
        try:
            wrong.write(line)
            assert isinstance(wrong.next(), Refused)
        except (BrokenPipeError, ConnectionResetError):  # the server closes before reading everything
            assert len(line) > 1 << 20
        right = Client.at(tmp_path / "watch.sock")
        right.write(encode_line(Request(STATE, (KEY,))))
        assert right.next() == Taken()


def test_one_that_asks_nothing_is_refused_in_a_while(tmp_path, commands):
    with closing(Listener(tmp_path / "watch.sock", commands)):
        client = Client.at(tmp_path / "watch.sock")
        client.write(b'{"Request": ')
        assert isinstance(client.next(), Refused)


def test_the_socket_is_its_users_and_goes_with_the_listener(tmp_path, commands):
    path = tmp_path / "locks" / "watch.sock"
    with closing(Listener(path, commands)):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        client = Client.at(path)
        client.write(encode_line(Request(STATE, (KEY,))))
        assert client.next() == Taken()
    assert client.next() is None
    assert not path.exists()


def test_a_socket_that_a_killed_process_left_is_replaced(settings, commands):
    path = Layout(settings.home).watch_socket
    path.parent.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    assert watch_client.delegate_to_watcher(settings, [KEY], lambda _: None, quiet=True) == {}
    with closing(Listener(path, commands)):
        Client.at(path)


def test_a_path_that_is_too_long_for_the_system_does(root, commands):
    home = root / ("long" * 40)
    settings = load_settings(root).model_copy(update={"home": home})
    commands.set_state(state_of(settings))
    found: list[object] = []

    def ask() -> None:
        found.append(watch_client.delegate_to_watcher(settings, [KEY], found.append, quiet=True))

    with closing(Listener(Layout(home).watch_socket, commands)):
        command = Thread(target=ask)
        command.start()
        assert commands.have_come.wait(PATIENCE_S)
        commands.answer(commands.first(), summary(KEY, seconds=100))
        command.join()
    [shown, returned] = found
    assert returned == {KEY: shown}
    assert shown["seconds"] < 100


def test_another_version_or_other_settings_are_another_state(root, monkeypatch):
    first = state_of(load_settings(root))
    assert state_of(load_settings(root)) == first
    monkeypatch.setenv("DOCINDEX_SEARCH__TOP_K", "3")
    monkeypatch.setenv("OPENAI_API_KEY", "of no use here")
    assert state_of(load_settings(root)) == first
    others = {first}
    for variable, value in (
        ("DOCINDEX_HISTORY__COMMITS", "7"),
        ("DOCINDEX_EMBEDDING__API_KEY", "secret"),
        ("DAGSTER_HOME", str(root)),
        ("DOCINDEX_EMBEDDING__PROVIDER", "openai"),
        ("OPENAI_API_KEY", "another"),
    ):
        monkeypatch.setenv(variable, value)
        others.add(state_of(load_settings(root)))
    monkeypatch.setattr("docindex_dagster.__version__", "0.0.1")
    others.add(state_of(load_settings(root)))
    assert len(others) == 7
    assert "secret" not in "".join(others)


def test_commands_that_would_wait_for_another_source_work_themselves(commands):
    before = waiting(commands, KEY)
    with commands.running("library/large"):
        meanwhile = waiting(commands, KEY)
        of_it = waiting(commands, "library/large", KEY)
    assert [type(one) for one in before.rest()] == [Taken, Refused]
    assert [type(one) for one in meanwhile.rest()] == [Refused]
    assert of_it.next() == Taken()


def test_commands_with_the_settings_of_before_work_themselves(commands):
    client = waiting(commands, KEY)
    commands.set_state("a newer state")
    assert [type(one) for one in client.rest()] == [Taken, Refused]
    assert [type(one) for one in waiting(commands, KEY).rest()] == [Refused]


def test_one_that_reads_no_more_stops_nobody(commands):
    waiting(commands, KEY)
    with commands.running(KEY):
        for done in range(100_000):
            events.emit(events.Progress(KEY, "chunks", done, None, "files"))
    assert commands.first() is None


def test_one_that_is_gone_is_forgotten(commands):
    waiting(commands, KEY).close()
    client = waiting(commands, KEY)
    with commands.running(KEY):
        events.emit(events.Waiting(KEY, "a lock"))
    assert client.next() == Taken()
    assert client.next() == events.Waiting(KEY, "a lock")


def test_a_wait_for_the_file_system_ends_with_a_command_and_forgets_nothing(tmp_path):
    notifier, have_come = Notifier(poll=False), Event()
    notifier.watch({str(tmp_path)})
    with closing(notifier):
        (tmp_path / "page.md").touch()
        have_come.set()
        started = time.monotonic()
        assert notifier.wait(PATIENCE_S, have_come) == []
        assert time.monotonic() - started < PATIENCE_S / 2
        have_come.clear()
        assert [event.path for event in notifier.wait(PATIENCE_S, have_come)] == [str(tmp_path / "page.md")]


def test_a_command_that_waited_for_a_run_gets_what_it_did(settings, commands):
    clients: list[Client] = []
    runs: list[str] = []

    def index(of: Settings, key: str) -> bool:
        runs.append(key)
        with commands.running(key):
            pipeline.index(of, registry.find(of, key), StaticEmbedder())
            if not clients:
                clients.append(waiting(commands, key, state=state_of(of)))
        commands.note(summary(key, changed=len(runs)))
        return True

    with closing(Watch(settings, (), index, lambda _: None, poll=False, commands=commands)) as watch:
        while not clients or commands.first() is not None:
            watch.step()
        assert clients[0].rest() == [Taken(), Ended(summary(KEY, changed=1))]
        assert runs == [KEY]

        late = waiting(commands, KEY, state=state_of(settings))
        watch.step()
        [_, ended] = late.rest()
        assert (ended.summary["run_id"], ended.summary["files"], ended.summary["changed"]) == (None, 1, 0)

        unknown = waiting(commands, "library/unknown", state=state_of(settings))
        watch.step()
        assert [type(one) for one in unknown.rest()] == [Taken, Refused]
    assert runs == [KEY]


def docindex(root: Path, *arguments: str, options: tuple[str, ...] = ()) -> "subprocess.Popen[str]":
    command = [sys.executable, *options, "-m", "docindex_dagster.cli", *arguments]
    return subprocess.Popen(command, cwd=root, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@contextmanager
def watched(root: Path) -> Iterator["subprocess.Popen[str]"]:
    """Start a watcher and wait until all is up to date. Then remove the source, so that only commands trigger runs."""
    process = docindex(root, "watch")
    try:
        assert process.stdout.readline().startswith("watching 1 source")
        assert "1 added" in process.stdout.readline()
        removed_sources.record_removal(Layout(load_settings(root).home), KEY)
        (root / "notes/guide.md").write_text("# Guide\n\nMarmots live in burrows.\n")
        yield process
    finally:
        process.kill()
        process.communicate()


def runs_of(root: Path) -> list[tuple[State, str, int]]:
    """Return the state, launcher and PID of each run, newest first."""
    found = [entry for _, entry in journal.runs(Layout(load_settings(root).home))]
    return [(entry.state, entry.run.launched_by, entry.pid) for entry in reversed(found)]


def test_the_process_that_watches_does_the_work_and_the_command_loads_nothing_for_it(root):
    with watched(root) as watcher:
        command = docindex(root, "index", "notes", options=("-X", "importtime"))
        out, errors = command.communicate(timeout=PATIENCE_S)
        assert command.returncode == 0
        assert out.startswith("library/notes: 1 file, 1 chunk (1 changed), 0 skipped, ")
        loaded = {line.rpartition("|")[2].strip() for line in errors.splitlines()}
        assert "docindex_dagster.cli.watch_client" in loaded
        assert {"dagster", "pyarrow", "lancedb", "numpy", "tantivy", "tomlkit"} & loaded == set()
        assert "library/notes: stores: 1 chunk" in errors

        [same] = json.loads(docindex(root, "index", "notes/guide.md", "--json").communicate(timeout=PATIENCE_S)[0])
        assert (same["run_id"], same["changed"], same["files"]) == (None, 0, 1)
        assert runs_of(root)[0] == (State.SUCCEEDED, "command line", watcher.pid)

        own = docindex(root, "index", "--run", "--json")
        own.communicate(timeout=PATIENCE_S)
        recorded = dagster_runs.RecordedRuns(load_settings(root)).newest(1)
        assert [(job.state, job.launched_by) for job in recorded] == [("succeeded", "command line")]


@contextmanager
def index_that_waits(root: Path) -> Iterator["subprocess.Popen[str]"]:
    """Start `docindex index` and block its run on a lock until the block ends."""
    lock = Layout(load_settings(root).home).source_lock(KEY)
    with exclusive(lock, "a test", lambda _: None):
        command = docindex(root, "index", "notes")
        assert "indexing notes" in command.stderr.readline()
        assert "library/notes: waiting for another run of this source (a test)" in command.stderr.readline()
        yield command


def test_where_it_is_killed_the_command_does_the_work_itself(root):
    with watched(root) as watcher:
        with index_that_waits(root) as command:
            watcher.kill()
            watcher.wait(PATIENCE_S)
            assert "the watching process has ended" in command.stderr.readline()
        out, errors = command.communicate(timeout=PATIENCE_S)
    assert command.returncode == 0, errors
    assert "(1 changed)" in out
    assert [(status, process) for status, _, process in runs_of(root)[:2]] == [
        (State.SUCCEEDED, command.pid),
        (State.LOST, watcher.pid),
    ]


def test_an_interrupted_command_waits_no_more_and_the_work_goes_on(root):
    with watched(root) as watcher:
        with index_that_waits(root) as command:
            command.send_signal(signal.SIGINT)
            _, errors = command.communicate(timeout=PATIENCE_S)
            assert command.returncode == 130
            assert errors.splitlines()[-1] == f"error: {watch_client._INTERRUPTED}"
            assert holder(Layout(load_settings(root).home).watch_lock).pid == watcher.pid
        assert "1 changed" in watcher.stdout.readline()
        assert runs_of(root)[0] == (State.SUCCEEDED, "command line", watcher.pid)
        os.kill(watcher.pid, signal.SIGINT)
        assert watcher.wait(PATIENCE_S) == 0
    assert not Layout(load_settings(root).home).watch_socket.exists()


def test_what_fails_without_a_summary_is_left_to_the_command(settings, commands):
    with closing(Watch(settings, (), lambda *_: False, lambda _: None, poll=False, commands=commands)) as watch:
        client = waiting(commands, KEY, state=state_of(settings))
        watch.step()
        assert [type(one) for one in client.rest()] == [Taken, Refused]


def test_where_the_system_lets_nobody_listen_a_line_says_so(settings, commands, capfd):
    Layout(settings.home).watch_socket.mkdir(parents=True)
    with watch._listening(settings, commands):
        pass
    assert capfd.readouterr().err.startswith("`docindex index` cannot delegate to this process (")
