"""Search servers follow what other machines publish and keep answering when they cannot."""

import time
from pathlib import Path
from typing import Any

import pytest

from docindex_dagster.core.errors import ObjectStoreError
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import exclusive
from docindex_dagster.core.settings import Settings, check_settings
from docindex_dagster.objects import shared_stores, snapshots
from docindex_dagster.objects.bucket import Bucket
from docindex_dagster.search.live_index import Live
from docindex_dagster.stores import link_files
from docindex_dagster.stores.generation import read_generation
from tests.conftest import chunks_of, publish_rows, vectors_of

KEY = "library/sample"


@pytest.fixture
def settings(tmp_path: Path, bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Return the settings of a search server that uses the bucket in memory."""
    monkeypatch.setattr(shared_stores, "configured_bucket", lambda _: bucket)
    return check_settings(tmp_path, {"storage": {"url": "s3://bucket/prefix"}})


def publish(bucket: Bucket, publisher: Layout, text: str) -> None:
    base = snapshots.pull(bucket, publisher)
    chunks = chunks_of({"a.py": [f"{text} reads a file"]}, KEY)
    publish_rows(publisher, KEY, chunks, vectors_of(chunks))
    snapshots.push(bucket, publisher, base)


def number(settings: Settings) -> int:
    generation = read_generation(Layout(settings.home))
    return generation.number if generation else 0


def test_a_home_follows_what_is_published(settings: Settings, bucket: Bucket, publisher: Layout) -> None:
    publish(bucket, publisher, "alpha")
    shared_stores.follow(settings, pytest.fail)
    assert number(settings) == 1
    publish(bucket, publisher, "gamma")
    shared_stores.follow(settings, pytest.fail)
    assert number(settings) == 2


def test_where_nothing_is_published_nothing_is_there(settings: Settings) -> None:
    shared_stores.follow(settings, pytest.fail)
    assert number(settings) == 0


def test_a_look_at_what_is_here_already_is_one_request(
    settings: Settings, bucket: Bucket, publisher: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(bucket, publisher, "alpha")
    shared_stores.follow(settings, pytest.fail)
    monkeypatch.setattr(snapshots, "pull", pytest.fail)
    shared_stores.follow(settings, pytest.fail)


def test_without_an_answer_the_index_of_before_stays_and_the_user_is_warned(
    settings: Settings, bucket: Bucket, publisher: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ObjectStoreError("s3://bucket: nobody answers")

    monkeypatch.setattr(snapshots, "read", fail)
    with pytest.raises(ObjectStoreError):
        shared_stores.follow(settings, pytest.fail)
    monkeypatch.undo()
    monkeypatch.setattr(shared_stores, "configured_bucket", lambda _: bucket)
    publish(bucket, publisher, "alpha")
    shared_stores.follow(settings, pytest.fail)
    monkeypatch.setattr(snapshots, "read", fail)
    warnings: list[str] = []
    shared_stores.follow(settings, warnings.append)
    assert warnings == ["s3://bucket: nobody answers; searches use the last downloaded index"]
    assert number(settings) == 1


def test_a_home_in_which_a_publisher_works_is_left_to_it(settings: Settings, bucket: Bucket, publisher: Layout) -> None:
    publish(bucket, publisher, "alpha")
    with exclusive(Layout(settings.home).publication_lock, "a publisher", pytest.fail):
        shared_stores.follow(settings, pytest.fail)
    assert number(settings) == 0


def test_a_home_whose_publication_failed_goes_back_to_what_is_published(
    settings: Settings, bucket: Bucket, publisher: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_stores, "configured_bucket", lambda _: bucket)
    publish(bucket, publisher, "alpha")
    with shared_stores.open_for_publishing(settings, None, "a publisher", pytest.fail) as stores:
        chunks = chunks_of({"a.py": ["gamma reads a file"]}, KEY)
        publish_rows(stores.layout, KEY, chunks, vectors_of(chunks))  # without a push
    assert number(settings) == 2
    shared_stores.follow(settings, pytest.fail)
    assert number(settings) == 1


def test_a_server_that_was_killed_as_it_went_over_to_a_generation_does_so_later(
    settings: Settings, bucket: Bucket, publisher: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    class KilledError(BaseException):
        """The process was killed."""

    def kill(*_: object) -> None:
        raise KilledError

    publish(bucket, publisher, "alpha")
    shared_stores.follow(settings, pytest.fail)
    publish(bucket, publisher, "gamma")
    with monkeypatch.context() as patch:
        patch.setattr(snapshots, "write_if_changed", kill)
        with pytest.raises(KilledError):
            shared_stores.follow(settings, pytest.fail)
    assert number(settings) == 1
    shared_stores.follow(settings, pytest.fail)
    assert number(settings) == 2


def test_where_nothing_is_new_the_links_of_the_graph_are_made(
    settings: Settings, bucket: Bucket, publisher: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_stores, "_INTERVAL_S", 0.05)
    publish(bucket, publisher, "alpha")
    replies: list[Exception | None] = [None, ObjectStoreError("nobody answers"), None]

    def follow(*arguments: Any) -> bool:
        if problem := replies.pop(0) if replies else None:
            arguments[1](str(problem))
            return False
        return really_follow(*arguments)

    really_follow = shared_stores.follow
    monkeypatch.setattr(shared_stores, "follow", follow)
    end = shared_stores.replicate(settings)
    ends_at = time.monotonic() + 30
    layout = Layout(settings.home)
    while not list(layout.links.glob("*.arrow")) and time.monotonic() < ends_at:
        time.sleep(0.02)
    end()
    generation = read_generation(layout)
    assert generation is not None
    assert link_files.read(layout, generation) is not None


def test_a_failure_of_any_kind_ends_no_replica(
    settings: Settings, bucket: Bucket, publisher: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_stores, "_INTERVAL_S", 0.05)
    publish(bucket, publisher, "alpha")
    failures = [ValueError("nobody thought of this")]

    def read(*arguments: Any) -> Any:
        if failures:
            raise failures.pop()
        return reading(*arguments)

    reading = snapshots.read
    monkeypatch.setattr(snapshots, "read", read)
    end = shared_stores.replicate(settings)
    ends_at = time.monotonic() + 30
    while number(settings) < 1 and time.monotonic() < ends_at:
        time.sleep(0.02)
    end()
    assert number(settings) == 1
    assert failures == []


def test_who_asks_again_and_again_finds_what_is_published_later(
    settings: Settings, bucket: Bucket, publisher: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_stores, "_INTERVAL_S", 0.05)
    publish(bucket, publisher, "alpha")
    shared_stores.follow(settings, pytest.fail)
    live = Live(settings)
    assert live.reading(lambda reader: reader.generation.number) == 1
    publish(bucket, publisher, "gamma")
    ends_at = time.monotonic() + 30
    while live.reading(lambda reader: reader.generation.number) < 2 and time.monotonic() < ends_at:
        time.sleep(0.02)
    assert live.reading(lambda reader: reader.generation.number) == 2
    shared_stores.replicate(settings)()
