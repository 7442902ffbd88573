"""Prepared tables of a source: any worker reuses those of the last run, and one of two concurrent runs wins."""

import pytest

from docindex_dagster.core import tables
from docindex_dagster.core.errors import ConflictError, ObjectStoreError
from docindex_dagster.core.layout import Layout
from docindex_dagster.objects import prepared
from docindex_dagster.objects.bucket import Bucket
from tests.conftest import chunks_of

KEY = "git/a"


def write(layout: Layout, text: str, key: str = KEY, asset: str = "chunks") -> None:
    tables.write(layout.table(asset, key), tables.stamp(chunks_of({"a.py": [text]}, key), text))


def texts(layout: Layout, key: str = KEY) -> list[str] | None:
    found: list[str] | None = tables.read(layout.table("chunks", key))["text"].to_pylist()
    return found


def objects(bucket: Bucket) -> set[str]:
    return {found.name for found in bucket.list("objects/")}


def test_another_worker_goes_on_from_the_tables_of_the_first(
    bucket: Bucket, publisher: Layout, replica: Layout
) -> None:
    assert prepared.pull(bucket, publisher, KEY) is None
    write(publisher, "one")
    pushed = prepared.push(bucket, publisher, KEY, None, "run 1")
    pulled = prepared.pull(bucket, replica, KEY)
    assert pulled == pushed
    assert texts(replica) == ["one"]
    write(replica, "two")
    assert prepared.push(bucket, replica, KEY, pulled, "run 2").number == 2
    assert prepared.pull(bucket, publisher, KEY).by == "run 2"
    assert texts(publisher) == ["two"]


def test_a_run_that_another_one_overtook_is_refused(bucket: Bucket, publisher: Layout, replica: Layout) -> None:
    write(publisher, "one")
    first = prepared.push(bucket, publisher, KEY, None, "run 1")
    write(replica, "two")
    prepared.push(bucket, replica, KEY, first, "run 2")
    write(publisher, "late")
    with pytest.raises(ConflictError, match=r"git%2Fa\.json was replaced by another process"):
        prepared.push(bucket, publisher, KEY, first, "run 1 again")
    prepared.pull(bucket, publisher, KEY)
    assert texts(publisher) == ["two"]


def test_the_same_tables_are_not_uploaded_again_and_a_run_that_ended_is_news_all_the_same(
    bucket: Bucket, publisher: Layout
) -> None:
    write(publisher, "one")
    first = prepared.push(bucket, publisher, KEY, None, "run 1")
    before, tags = objects(bucket), prepared.pointer_tags(bucket)
    second = prepared.push(bucket, publisher, KEY, first, "run 2")
    assert (second.files, second.number) == (first.files, 2)
    assert objects(bucket) == before
    assert prepared.pointer_tags(bucket) != tags


def test_a_home_loses_the_tables_that_the_pointer_does_not_name(
    bucket: Bucket, publisher: Layout, replica: Layout
) -> None:
    write(publisher, "one")
    prepared.push(bucket, publisher, KEY, None, "run 1")
    write(replica, "of another time", asset="embeddings")
    write(replica, "of another source", "git/b")
    prepared.pull(bucket, replica, KEY)
    assert not replica.table("embeddings", KEY).exists()
    assert texts(replica, "git/b") == ["of another source"]


def test_the_tables_of_an_index_from_before_machines_shared_it_are_gone_on_from(
    bucket: Bucket, publisher: Layout
) -> None:
    write(publisher, "one")
    assert prepared.pull(bucket, publisher, KEY) is None
    assert texts(publisher) == ["one"]


def test_a_damaged_table_of_a_home_is_fetched_again(bucket: Bucket, publisher: Layout) -> None:
    write(publisher, "one")
    prepared.push(bucket, publisher, KEY, None, "run 1")
    file = publisher.table("chunks", KEY)
    file.write_bytes(file.read_bytes()[:-10] + b"0123456789")
    prepared.pull(bucket, publisher, KEY)
    assert texts(publisher) == ["one"]


def test_a_source_is_withdrawn_by_a_pointer_without_tables(bucket: Bucket, publisher: Layout) -> None:
    assert prepared.withdraw(bucket, KEY, "me") is None
    write(publisher, "one")
    prepared.push(bucket, publisher, KEY, None, "run 1")
    withdrawn = prepared.withdraw(bucket, KEY, "me")
    assert withdrawn.is_withdrawn
    assert withdrawn.number == 2
    assert prepared.pull(bucket, publisher, KEY) == withdrawn
    assert not publisher.table("chunks", KEY).exists()


@pytest.mark.parametrize("path", ["/etc/passwd", "../outside", "tables/../../outside", "stores/CURRENT"])
def test_a_pointer_that_leads_out_of_the_tables_is_refused(bucket: Bucket, publisher: Layout, path: str) -> None:
    write(publisher, "one")
    pushed = prepared.push(bucket, publisher, KEY, None, "run 1")
    data = bucket.get(prepared.pointer_name(KEY)).data.replace(b"tables/chunks/git%2Fa.parquet", path.encode())
    bucket.replace(prepared.pointer_name(KEY), data, pushed.tag)
    with pytest.raises(ObjectStoreError, match="not a table or summary"):
        prepared.pull(bucket, publisher, KEY)


def test_a_pointer_that_is_damaged_is_named(bucket: Bucket, publisher: Layout) -> None:
    bucket.replace(prepared.pointer_name(KEY), b'{"source":', None)
    with pytest.raises(ObjectStoreError, match=r"memory/prepared/git%2Fa.json is damaged"):
        prepared.pull(bucket, publisher, KEY)


def test_a_table_that_was_removed_is_an_error_that_says_what_to_do(
    bucket: Bucket, publisher: Layout, replica: Layout
) -> None:
    write(publisher, "one")
    prepared.push(bucket, publisher, KEY, None, "run 1")
    bucket.delete(objects(bucket))
    with pytest.raises(ObjectStoreError, match="a table of git/a is missing: index the source in full"):
        prepared.pull(bucket, replica, KEY)
