"""A deployment as in `deploy/`, on simulated hosts of this machine.

No host sees another host's disk. The control host runs the code location and the daemon. Workers and the publisher take
runs from the queue. A search server knows only the URL of the object store.
"""

import contextlib
import http.client
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import yaml

from docindex_dagster.core.layout import Layout
from tests.scale.faults import NO_FAULTS, Faults, Proxy, proxy
from tests.scale.hosts import DISK, Host, Program, host
from tests.scale.launchers import DEPLOY, Launcher, Role, celery
from tests.scale.postgres import Postgres, postgres
from tests.scale.processes import CHECKOUT, answers, free_port, tail, wait_for
from tests.scale.repositories import Repositories, Repository, project, repositories, revisions
from tests.scale.s3 import ObjectStore, s3

PREFIX = "team"
_PROJECT = Path("project")
_DAGSTER = Path("dagster")
_SEARCH_TIMEOUT_S = 30
_NO_SUCH_SOURCE = "/problems/source"
_REMOTE_INTERVAL_S = 30  # the shortest interval that the settings allow
_START_S = 240.0
OVER = {"SUCCESS", "FAILURE", "CANCELED"}


@dataclass(frozen=True, slots=True)
class Run:
    """A run as recorded by Dagster."""

    id: str
    job: str
    status: str
    source: str
    host: str


@dataclass(frozen=True, slots=True)
class Lock:
    """A held distributed lock: its holder, and the seconds since the holder was last active."""

    owner: str
    silent_s: float

    def is_of(self, run: Run) -> bool:
        """Return whether a run holds the lock, for any purpose."""
        return self.owner.startswith(f"docindex run {run.id}")


@dataclass(frozen=True, slots=True)
class Hit:
    """A search result."""

    chunk_id: str
    source: str
    path: str
    text: str
    score: float


class GitTimeoutError(Exception):
    """The search server is down or has no index yet."""


@dataclass(slots=True)
class Deployment:
    """The hosts and their shared services."""

    database: Postgres
    proxy: Proxy
    repositories: Repositories
    search_port: int
    control: Host
    publishers: list[Host]
    searcher: Host
    workers: list[Host]
    files: dict[Path, str]
    _roles: dict[str, Role] = field(default_factory=dict)
    _started: dict[tuple[str, str], Program] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return self.proxy.store.url(PREFIX)

    @property
    def hosts(self) -> list[Host]:
        return [self.control, *self.workers, *self.publishers, self.searcher]

    def host(self, name: str) -> Host:
        """Return the host with this name."""
        return next(made for made in self.hosts if made.name == name)

    def start(self, made: Host, role: Role | None = None) -> None:
        """Start the programs of a host's role that are not running."""
        role = self._roles[made.name] = role or self._roles[made.name]
        if role.has_project:
            self._lay(made)
        for name, command in role.programs:
            started = self._started.get((made.name, name))
            if started is None or not started.is_running:
                self._started[made.name, name] = made.start(name, command)

    def revive(self, made: Host) -> None:
        """Boot a crashed host, or restart its programs that ended, as a supervisor would."""
        if not made.is_up:
            made.boot()
        self.start(made)

    def _lay(self, made: Host) -> None:
        """Install the contents of the `deploy/Dockerfile` image and the project on a host."""
        for path, text in self.files.items():
            file = made.folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.with_suffix(".new").write_text(text)
            file.with_suffix(".new").replace(file)

    def declare(self) -> None:
        """Write the current repositories to `docindex.toml` on every host that has the project."""
        self.files[_PROJECT / "docindex.toml"] = project(self.repositories.all)
        for made in (self.control, *self.workers, *self.publishers):
            self._lay(made)

    @property
    def replica(self) -> Layout:
        """Return the layout of the search server's home."""
        return Layout(self.searcher.folder / ".docindex")

    def ask_for(self, edited: Sequence[Repository]) -> Program:
        """Start `docindex index`, which requests runs and follows them."""
        program = Path(sys.executable).with_name("docindex")
        return self.control.start("index", [program, "index", *(one.key for one in edited)], DISK / _PROJECT)

    def docindex(self, *arguments: str, patience_s: float = 600.0) -> "subprocess.CompletedProcess[str]":
        """Run a docindex command on the control host."""
        program = Path(sys.executable).with_name("docindex")
        return self.control.run([program, *arguments], DISK / _PROJECT, patience_s)

    def runs(self) -> list[Run]:
        """Return all runs, oldest first."""
        tag = "(SELECT value FROM run_tags t WHERE t.run_id = r.run_id AND t.key = '{}' LIMIT 1)"
        source = f"coalesce({tag.format('dagster/partition')}, {tag.format('docindex/source')}, '')"
        where = f"coalesce({tag.format('.dagster/docindex/host')}, '')"
        rows = self.database.ask(f"SELECT run_id, pipeline_name, status, {source}, {where} FROM runs r ORDER BY r.id")
        return [Run(*row.split("|")) for row in rows]

    def unfinished(self) -> list[Run]:
        """Return the unfinished runs."""
        return [run for run in self.runs() if run.status not in OVER]

    def has_event(self, run_id: str, text: str) -> bool:
        """Return whether any event of a run contains a text."""
        return self.database.ask(
            f"SELECT count(*) FROM event_logs WHERE run_id = '{run_id}' AND event LIKE '%{text}%'"
        ) != ["0"]

    def locks(self) -> list[Lock]:
        """Return the distributed locks that are held."""
        found = (row.rpartition("|") for row in self.database.advisory_locks())
        return [Lock(owner, float(silent_s)) for owner, _, silent_s in found]

    def search(self, query: str, **options: Any) -> list[Hit]:
        """Query the search server.

        Raises:
            GitTimeoutError: the server is down or has no index yet.
        """
        connection = http.client.HTTPConnection("127.0.0.1", self.search_port, timeout=_SEARCH_TIMEOUT_S)
        try:
            connection.request("GET", "/api/v1/search?" + urlencode({"query": query, **options}, doseq=True))
            answer = connection.getresponse()
            body = answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise GitTimeoutError(repr(error)) from error
        finally:
            connection.close()
        if answer.status == 422 and json.loads(body)["type"] == _NO_SUCH_SOURCE:
            return []
        if answer.status != 200:
            raise GitTimeoutError(f"{answer.status}: {body.decode(errors='replace')[:500]}")
        found = json.loads(body)["items"]
        return [Hit(**{name: hit[name] for name in ("chunk_id", "source", "path", "text", "score")}) for hit in found]

    def stamp(self, repository: Repository) -> list[Hit]:
        """Return the search results for the revision markers of a repository."""
        hits = self.search("stamp revision", sources=repository.key, path="stamp", mode="bm25", limit=50)
        return [hit for hit in hits if hit.source == repository.key]

    def found_revision(self, repository: Repository) -> int:
        """Return the revision of a repository that searches find, or 0 if they find none or fail."""
        with contextlib.suppress(GitTimeoutError):
            return max(revisions([hit.text for hit in self.stamp(repository)]), default=0)
        return 0

    def behind(self) -> list[str]:
        """Return the repositories whose newest revision searches do not find."""
        return [one.name for one in self.repositories.all if self.found_revision(one) != one.revision]

    def settle(self, patience_s: float) -> None:
        """Wait until searches find the newest revision of every repository and no run is in progress.

        Raises:
            AssertionError: the wait timed out; the message says what is missing.
        """
        self.wait(self.is_settled, "everything to settle", patience_s)

    def is_settled(self) -> bool:
        """Return whether no run is in progress and searches find the newest revision of every repository."""
        return not self.unfinished() and not self.behind()

    def wait(self, condition: Callable[[], Any], what: str, patience_s: float, every_s: float = 1.0) -> Any:
        """Poll a condition until it is true, and return its value.

        Raises:
            AssertionError: the wait timed out; the message reports the state of the deployment.
        """
        try:
            return wait_for(condition, what, patience_s, every_s)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.report()}") from None

    def report(self) -> str:
        """Return a report of pending work and the ends of the logs."""
        parts = [
            f"behind: {self.behind()}",
            f"unfinished: {self.unfinished()}",
            f"locks: {self.database.advisory_locks()}",
        ]
        for made in self.hosts:
            logs = sorted((made.folder / "logs").glob("*.log"))
            parts += [f"--- {made.name}: {file.name}\n{tail(file, 1500)}" for file in logs]
        return "\n".join(parts)


@contextmanager
def deployment(
    folder: Path,
    sources: int,
    *,
    workers: int = 2,
    publishers: int = 1,
    seed: int = 0,
    faults: Faults = NO_FAULTS,
    launcher: Callable[[Path], AbstractContextManager[Launcher]] = celery,
) -> Iterator[Deployment]:
    """Start a deployment that indexes `sources` small repositories.

    Args:
        folder: parent of the hosts' disks.
        sources: number of repositories.
        workers: number of workers.
        publishers: number of publishing hosts; only one publishes at a time.
        seed: seed for the repositories' contents and the faults.
        faults: faults of the object store.
        launcher: run launcher for a project in this folder.
    """
    with ExitStack() as stack:
        enter = stack.enter_context
        served = enter(repositories(folder / "repositories", sources, seed))
        database = enter(postgres())
        between = enter(proxy(enter(s3()), seed, faults, PREFIX))
        starts = enter(launcher(folder / "hosts" / "control" / _PROJECT))
        shared = _variables(database, between.store) | starts.variables
        code_port, search_port = free_port(), free_port()
        control = enter(host(folder / "hosts", "control", **shared))

        def at_work(kind: str, count: int, role: Role | None) -> list[Host]:
            numbers = range(1, count + 1) if role is not None else ()
            return [enter(host(folder / "hosts", f"{kind}{number}", **shared)) for number in numbers]

        searcher = enter(host(folder / "hosts", "search", **_of_the_store(between.store)))
        deployed = Deployment(
            database,
            between,
            served,
            search_port,
            control,
            at_work("publisher", publishers, starts.publisher),
            searcher,
            at_work("worker", workers, starts.worker),
            _files(starts, code_port, workers, publishers),
        )
        deployed.declare()
        if starts.port is not None:
            deployed.start(control, starts.head)
            deployed.wait(partial(answers, starts.port), "the launcher", _START_S)
        deployed.start(control, _control(starts, code_port))
        wait_for(lambda: answers(code_port), "the code location", _START_S)
        for made in deployed.workers:
            deployed.start(made, starts.worker)
        for made in deployed.publishers:
            deployed.start(made, starts.publisher)
        deployed.start(searcher, _search(search_port))
        yield deployed


def _variables(database: Postgres, store: ObjectStore) -> dict[str, str]:
    """Return the variables of `deploy/env.example`."""
    return {
        **_of_the_store(store),
        "DAGSTER_PG_HOST": "127.0.0.1",
        "DAGSTER_PG_PORT": str(database.port),
        "DAGSTER_PG_DB": "docindex",
        "DAGSTER_PG_USERNAME": "docindex",
        "DAGSTER_PG_PASSWORD": "of nobody",
        "DAGSTER_HOME": str(DISK / _DAGSTER),
        "DOCINDEX_ROOT": str(DISK / _PROJECT),
        "DOCINDEX_HOME": str(DISK / "index"),
        "DOCINDEX_SCHEDULE__REMOTE_INTERVAL_S": str(_REMOTE_INTERVAL_S),
        "PYTHONPATH": f"{DEPLOY / 'celery'}:{CHECKOUT}",
    }


def _of_the_store(store: ObjectStore) -> dict[str, str]:
    return {**store.environment, "DOCINDEX_STORAGE__URL": store.url(PREFIX), "PYTHONPATH": str(CHECKOUT)}


def _files(launcher: Launcher, code_port: int, workers: int, publishers: int) -> dict[Path, str]:
    """Return the files of `deploy/` for this number of workers and publishers."""
    instance = {**yaml.safe_load((DEPLOY / "dagster" / "base.yaml").read_text()), **launcher.instance}
    runs = instance["concurrency"]["runs"]
    runs["max_concurrent_runs"] = workers + publishers
    runs["tag_concurrency_limits"][0]["limit"] = workers
    workspace = (DEPLOY / "workspace.yaml").read_text()
    workspace = workspace.replace("host: code", "host: 127.0.0.1").replace("port: 4000", f"port: {code_port}")
    return {_DAGSTER / "dagster.yaml": yaml.safe_dump(instance), _DAGSTER / "workspace.yaml": workspace}


def _control(launcher: Launcher, port: int) -> Role:
    code = ("dagster", "api", "grpc", "--host", "127.0.0.1", "--port", str(port))
    daemon = ("dagster-daemon", "run", "--workspace", str(DISK / _DAGSTER / "workspace.yaml"))
    own = (("code", (*code, "--module-name", "docindex_dagster.definitions")), ("daemon", daemon))
    return Role((*launcher.head.programs, *own))


def _search(port: int) -> Role:
    return Role((("serve", ("docindex", "serve", "--port", str(port), "--no-jobs", "--no-token")),), has_project=False)
