"""Garbage collection deletes unreferenced objects past a minimum age and keeps everything else."""

from datetime import timedelta

import pytest

from docindex_dagster.core import tables
from docindex_dagster.core.errors import ConflictError, ObjectStoreError
from docindex_dagster.core.layout import Layout
from docindex_dagster.objects import contents, garbage_collection, prepared, snapshots
from docindex_dagster.objects.bucket import Bucket
from docindex_dagster.stores.doctor import check
from docindex_dagster.stores.reader import open_reader
from tests.conftest import chunks_of, publish_rows, vectors_of

KEY = "library/sample"


def publish(bucket: Bucket, layout: Layout, text: str) -> None:
    base = snapshots.pull(bucket, layout)
    chunks = chunks_of({"a.py": [f"{text} reads a file"]}, KEY)
    publish_rows(layout, KEY, chunks, vectors_of(chunks))
    snapshots.push(bucket, layout, base)


def prepare(bucket: Bucket, layout: Layout, text: str) -> None:
    base = prepared.pull(bucket, layout, KEY)
    tables.write(layout.table("chunks", KEY), tables.stamp(chunks_of({"a.py": [text]}, KEY), text))
    prepared.push(bucket, layout, KEY, base, "a run")


@pytest.fixture
def without_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat every object as old enough to delete."""
    monkeypatch.setattr(garbage_collection, "MAX_UNREFERENCED_AGE", timedelta(seconds=-1))


@pytest.mark.usefixtures("without_grace")
def test_what_is_published_and_prepared_stays_and_nothing_else(
    bucket: Bucket, publisher: Layout, replica: Layout
) -> None:
    for text in ("alpha", "beta", "gamma", "delta"):
        publish(bucket, publisher, text)
        prepare(bucket, publisher, text)
    everything = {found.name for found in bucket.list(contents.FOLDER)}
    gone = {found.name for found in garbage_collection.collect(bucket)}
    left = {found.name for found in bucket.list(contents.FOLDER)}
    assert gone
    assert gone | left == everything
    assert gone & left == set()
    assert garbage_collection.collect(bucket) == []
    snapshots.pull(bucket, replica)
    check(replica, open_reader(replica).generation)
    assert prepared.pull(bucket, replica, KEY).number == 4


def test_what_may_still_be_named_stays(bucket: Bucket, publisher: Layout) -> None:
    publish(bucket, publisher, "alpha")
    publish(bucket, publisher, "beta")
    publish(bucket, publisher, "gamma")
    assert garbage_collection.collect(bucket) == []


@pytest.mark.usefixtures("without_grace")
def test_nothing_goes_while_something_that_names_objects_cannot_be_read(bucket: Bucket, publisher: Layout) -> None:
    prepare(bucket, publisher, "alpha")
    prepare(bucket, publisher, "beta")
    bucket.replace("prepared/damaged.json", b"{", None)
    before = list(bucket.list(contents.FOLDER))
    with pytest.raises(ObjectStoreError, match="is damaged"):
        garbage_collection.collect(bucket)
    assert list(bucket.list(contents.FOLDER)) == before


@pytest.mark.usefixtures("without_grace")
def test_it_is_done_once_a_day(bucket: Bucket, publisher: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    for text in ("alpha", "beta"):
        prepare(bucket, publisher, text)
    assert garbage_collection.collect_if_due(bucket) == 1
    prepare(bucket, publisher, "gamma")
    assert garbage_collection.collect_if_due(bucket) == 0
    monkeypatch.setattr(garbage_collection, "_BETWEEN", timedelta())
    assert garbage_collection.collect_if_due(bucket) == 1


def test_a_machine_whose_clock_was_ahead_by_years_ends_it_for_nobody(bucket: Bucket, publisher: Layout) -> None:
    bucket.replace("garbage/last", b"2100-01-01T00:00:00+00:00 nonce", None)
    garbage_collection.collect_if_due(bucket)
    assert bucket.get("garbage/last").data.startswith(b"20")
    assert not bucket.get("garbage/last").data.startswith(b"2100")


def test_what_took_so_long_that_it_may_be_gone_is_not_published(
    bucket: Bucket, publisher: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contents, "MAX_UNREFERENCED_AGE", timedelta(seconds=-1))
    with pytest.raises(ConflictError, match="its result is discarded"):
        prepare(bucket, publisher, "alpha")
    with pytest.raises(ConflictError, match="its result is discarded"):
        publish(bucket, publisher, "alpha")
    assert list(prepared.pointer_tags(bucket)) == []
    assert snapshots.read(bucket) is None
