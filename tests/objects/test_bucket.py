"""Object store: a conditional put has one winner, and its result is certain whatever the server answers."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from obstore.store import MemoryStore

from docindex_dagster.core.errors import ConflictError, ObjectStoreError, SettingsError
from docindex_dagster.core.retry import Retry
from docindex_dagster.core.settings import StorageSettings
from docindex_dagster.objects import bucket as buckets
from docindex_dagster.objects.bucket import Bucket, open_bucket
from tests.objects import s3


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[s3.S3]:
    with s3.serving() as held:
        for name, value in s3.environment(held).items():
            monkeypatch.setenv(name, value)
        yield held


def test_what_was_put_is_read_back() -> None:
    bucket = Bucket("memory", MemoryStore())
    tag = bucket.replace("a/b", b"one", None)
    found = bucket.get("a/b")
    assert found is not None
    assert (found.data, found.tag) == (b"one", tag)
    assert bucket.get("a/c") is None


def test_an_object_is_read_again_only_if_it_changed(server: s3.S3) -> None:
    bucket = open_bucket("s3://bucket/prefix")
    tag = bucket.replace("a", b"one", None)
    assert bucket.get("a", tag) is None
    bucket.replace("a", b"two", tag)
    assert bucket.get("a", tag).data == b"two"


def test_objects_are_listed_below_a_prefix_and_deleted(server: s3.S3) -> None:
    bucket = open_bucket("s3://bucket/prefix")
    names = ["a/git%2Fone two.json", "a/b", "ab/c"]
    tags = {name: bucket.replace(name, name.encode(), None) for name in names}
    assert {found.name: found.tag for found in bucket.list("a/")} == {name: tags[name] for name in names[:2]}
    bucket.delete(names[:1])
    bucket.delete([])
    assert [found.name for found in bucket.list("a/")] == ["a/b"]


def test_who_replaces_what_was_replaced_meanwhile_is_refused(server: s3.S3) -> None:
    bucket = open_bucket("s3://bucket/prefix")
    first = bucket.replace("a", b"one", None)
    bucket.replace("a", b"two", first)
    with pytest.raises(ConflictError, match="s3://bucket/prefix/a was replaced by another process"):
        bucket.replace("a", b"three", first)
    with pytest.raises(ConflictError):
        bucket.replace("a", b"three", None)
    assert bucket.get("a").data == b"two"


def test_of_many_writers_each_increment_counts() -> None:
    bucket = Bucket("memory", MemoryStore())
    bucket.replace("count", b"0 start", None)

    def add(writer: int) -> None:
        for number in range(25):
            while True:
                found = bucket.get("count")
                count = int(found.data.split()[0])
                try:
                    bucket.replace("count", f"{count + 1} {writer}-{number}".encode(), found.tag)
                    break
                except ConflictError:
                    continue

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(4)))
    assert bucket.get("count").data.startswith(b"100 ")


def test_a_put_that_was_done_and_answered_by_an_error_counts_as_done(
    server: s3.S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = open_bucket("s3://bucket/prefix")
    tag = bucket.replace("a", b"one", None)
    server.faults.append("do and refuse")
    assert bucket.replace("a", b"two", tag) == s3.tag_of(b"two")
    server.faults.append("do and refuse")
    assert bucket.replace("b", b"new", None) == s3.tag_of(b"new")
    assert not server.faults


def test_a_put_is_tried_again_while_the_server_fails(server: s3.S3) -> None:
    bucket = open_bucket("s3://bucket/prefix")
    tag = bucket.replace("a", b"one", None)
    server.faults.extend(["refuse", "refuse"])
    bucket.replace("a", b"two", tag)
    assert server.objects["/bucket/prefix/a"] == b"two"


def test_an_answer_that_is_cut_is_asked_for_again(server: s3.S3, tmp_path: Path) -> None:
    bucket = open_bucket("s3://bucket/prefix")
    bucket.replace("a/one", b"first", None)
    bucket.replace("a/two", b"second", None)

    server.cuts = 1
    assert bucket.get("a/one").data == b"first"
    server.cuts = 1
    assert [found.name for found in bucket.list("a/")] == ["a/one", "a/two"]
    server.cuts = 1
    bucket.download("a/two", len(b"second"), tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == b"second"
    server.cuts = 1
    bucket.delete(["a/one", "a/two"])
    assert not server.objects
    assert server.cuts == 0


def test_a_server_that_keeps_failing_is_an_error_that_names_the_place(
    server: s3.S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buckets, "_MAX_RETRIES", 0)
    monkeypatch.setattr(buckets, "_RETRY", Retry(retries=1, first_wait_s=0.01))
    bucket = open_bucket("s3://bucket/prefix")
    server.faults.extend(["refuse"] * 50)
    with pytest.raises(ObjectStoreError, match="s3://bucket/prefix: replacing a failed"):
        bucket.replace("a", b"one", None)


def test_where_nobody_listens_reading_says_so(server: s3.S3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buckets, "_MAX_RETRIES", 0)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(ObjectStoreError, match="reading a failed"):
        open_bucket("s3://bucket/prefix").get("a")


@pytest.mark.parametrize("url", ["bucket", "http://host/x", "s3://", "s3://key:secret@bucket/x", "s3://bucket/x?y=1"])
def test_a_url_that_is_no_bucket_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"must (have the form|contain only a bucket)"):
        StorageSettings(url=url)


def test_an_environment_that_makes_no_sense_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "no url at all")
    monkeypatch.setenv("AWS_ALLOW_HTTP", "perhaps")
    with pytest.raises((SettingsError, ObjectStoreError), match="s3://bucket"):
        open_bucket("s3://bucket/prefix").get("a")


def test_an_object_that_is_too_large_for_any_one_answer_comes_in_parts(
    server: s3.S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket, data = open_bucket("s3://bucket/prefix"), bytes(range(256)) * 100
    bucket.replace("large", data, None)
    monkeypatch.setattr(buckets, "_PART", 1000, raising=False)
    server.most = 1000
    bucket.download("large", len(data), tmp_path / "large")
    assert (tmp_path / "large").read_bytes() == data


def test_an_object_that_was_cut_is_read_to_its_end(server: s3.S3, tmp_path: Path) -> None:
    bucket = open_bucket("s3://bucket/prefix")
    bucket.replace("cut", b"123", None)
    bucket.replace("empty", b"", None)
    bucket.download("cut", 5, tmp_path / "cut")
    bucket.download("empty", 0, tmp_path / "empty")
    assert [(tmp_path / name).read_bytes() for name in ("cut", "empty")] == [b"123", b""]
