"""Random histories of workers, publishers and replicas that fail anywhere: no data is partial, lost or duplicated."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from obstore.store import MemoryStore

from docindex_dagster.core import tables
from docindex_dagster.core.errors import ConflictError, DocindexError, StoreError
from docindex_dagster.core.layout import Layout
from docindex_dagster.objects import prepared, snapshots
from docindex_dagster.objects.bucket import Bucket
from docindex_dagster.objects.prepared import Prepared
from docindex_dagster.objects.shared_stores import SharedStores
from docindex_dagster.stores.doctor import check, roll_back
from docindex_dagster.stores.generation import read_generation
from docindex_dagster.stores.publish import withdraw
from docindex_dagster.stores.reader import open_reader
from tests.conftest import chunks_of, publish_rows, vectors_of

KEYS = ("git/a", "git/b", "library/c")
WORDS = ("alpha", "beta", "gamma", "delta", "epsilon")
REQUESTS = ("get", "replace", "upload", "download", "list")


class LostError(DocindexError):
    """The process died or lost the network."""


@contextmanager
def failing(left: int | None, *, after: bool) -> Iterator[None]:
    """Make all requests after the first `left` fail. The first failing request takes effect if `after` is true."""
    rest = [left]

    def failing_one(request: Any) -> Any:
        def wrapped(*arguments: Any) -> Any:
            if rest[0] is None:
                return request(*arguments)
            rest[0] -= 1
            if rest[0] < 0:
                if after and rest[0] == -1:
                    request(*arguments)
                raise LostError("the process died")
            return request(*arguments)

        return wrapped

    with patch.multiple(Bucket, **{name: failing_one(getattr(Bucket, name)) for name in REQUESTS}):
        yield


class World:
    """Machines with their own homes, a bucket, and the expected final state."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bucket = Bucket("memory", MemoryStore())
        self.begun: dict[tuple[str, int], Prepared | None] = {}
        self.expected: dict[str, str | None] = {}
        self.unsure: dict[str, set[str | None]] = {}
        self.number = 0

    def home(self, name: str) -> Layout:
        return Layout(self.folder / name)

    def begin(self, key: str, worker: int) -> None:
        self.begun[key, worker] = prepared.pull(self.bucket, self.home(f"worker {worker}"), key)

    def end(self, key: str, worker: int, word: str) -> None:
        """End the run of a worker. If its result is unknown, both outcomes are allowed."""
        if (key, worker) not in self.begun:
            return
        layout, base = self.home(f"worker {worker}"), self.begun.pop((key, worker))
        chunks = chunks_of({"a.py": [f"{word} reads a file"]}, key)
        tables.write(layout.table("chunks", key), tables.stamp(chunks, word))
        try:
            prepared.push(self.bucket, layout, key, base, f"worker {worker}")
        except ConflictError:
            assert prepared.read(self.bucket, prepared.pointer_name(key)) != base
        except LostError:
            self.unsure.setdefault(key, {self.expected.get(key)}).add(word)
        else:
            self.expected[key] = word
            self.unsure.pop(key, None)

    def remove(self, key: str) -> None:
        try:
            done = prepared.withdraw(self.bucket, key, "a user")
        except LostError:
            self.unsure.setdefault(key, {self.expected.get(key)}).add(None)
        else:
            if done is not None:
                self.expected[key] = None
                self.unsure.pop(key, None)

    def publish(self, publisher: int) -> None:
        layout = self.home(f"publisher {publisher}")
        stores = SharedStores(self.bucket, layout, snapshots.pull(self.bucket, layout))
        for pointer in stores.pending():
            prepared.pull(self.bucket, layout, pointer.source)
            if pointer.is_withdrawn:
                withdraw(layout, pointer.source)
            else:
                chunks = tables.read(layout.table("chunks", pointer.source)).replace_schema_metadata(None)
                publish_rows(layout, pointer.source, chunks, vectors_of(chunks))
            stores.note(pointer)
        stores.push()

    def roll_back(self, publisher: int) -> None:
        layout = self.home(f"publisher {publisher}")
        base = snapshots.pull(self.bucket, layout)
        with suppress(StoreError):
            roll_back(layout)
        snapshots.push(self.bucket, layout, base)

    def follow(self, replica: int) -> None:
        snapshots.pull(self.bucket, self.home(f"replica {replica}"))

    def look(self) -> None:
        """Check that every home in use is consistent and that the generation number never decreases."""
        for name in ("replica 0", "replica 1"):
            layout = self.home(name)
            if layout.current.exists():
                check(layout, open_reader(layout).generation)
        manifest = snapshots.read(self.bucket)
        number = manifest.number if manifest else 0
        assert number >= self.number
        self.number = number

    def found(self, name: str) -> dict[str, str]:
        """Return the first word of each source in a home."""
        layout = self.home(name)
        if read_generation(layout) is None:
            return {}
        rows: pa.Table = open_reader(layout).table.search().limit(None).to_arrow()
        return {row["source"]: row["text"].split()[0] for row in rows.select(["source", "text"]).to_pylist()}


PLACES = st.sampled_from(KEYS)
MACHINES = st.integers(0, 1)
STEPS = st.one_of(
    st.tuples(st.just("begin"), PLACES, MACHINES),
    st.tuples(st.just("end"), PLACES, MACHINES, st.sampled_from(WORDS)),
    st.tuples(st.just("publish"), MACHINES),
    st.tuples(st.just("follow"), MACHINES),
    st.tuples(st.just("roll_back"), MACHINES),
    st.tuples(st.just("remove"), PLACES),
)
FAILURES = st.one_of(st.none(), st.none(), st.integers(0, 12))


def test_what_a_rollback_brought_back_can_be_removed_again(tmp_path):
    world = World(tmp_path)
    world.begin("git/a", 0)
    world.end("git/a", 0, "alpha")
    world.publish(0)
    world.remove("git/a")
    world.publish(0)
    world.roll_back(0)
    assert world.found("publisher 0") == {"git/a": "alpha"}

    world.remove("git/a")
    world.publish(0)

    assert world.found("publisher 0") == {}


HISTORIES = st.lists(st.tuples(STEPS, FAILURES, st.booleans()), min_size=8, max_size=30)


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(HISTORIES)
def test_whatever_fails_in_the_end_all_machines_find_what_was_prepared_last(steps):
    all_machines_find_what_was_prepared_last(steps)


@pytest.mark.states
@settings(max_examples=500, suppress_health_check=[HealthCheck.too_slow])
@given(HISTORIES)
def test_in_hundreds_of_histories_they_do_too(steps):
    all_machines_find_what_was_prepared_last(steps)


def all_machines_find_what_was_prepared_last(steps: list[tuple[tuple[Any, ...], int | None, bool]]) -> None:
    with TemporaryDirectory() as folder:
        world = World(Path(folder))
        for (name, *arguments), left, after in steps:
            with failing(left, after=after), suppress(LostError, ConflictError):
                getattr(world, name)(*arguments)
            world.look()
        for key in KEYS:  # a run without differences, or another removal, undoes a rollback
            pointer = prepared.pull(world.bucket, world.home("worker 2"), key)
            if pointer is not None and pointer.is_withdrawn:
                prepared.withdraw(world.bucket, key, "a user")
            elif pointer is not None:
                prepared.push(world.bucket, world.home("worker 2"), key, pointer, "worker 2")
        world.publish(0)
        world.follow(0)
        world.look()
        found = world.found("replica 0")
        assert found == world.found("publisher 0")
        for key in KEYS:
            assert found.get(key) in world.unsure.get(key, {world.expected.get(key)})
