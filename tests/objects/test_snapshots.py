"""Snapshots of stores: a replica gets all or nothing of a published generation, and one of two publishers wins."""

from pathlib import Path

import pytest

from docindex_dagster.core.errors import ConflictError, ObjectStoreError
from docindex_dagster.core.layout import Layout
from docindex_dagster.objects import contents, snapshots
from docindex_dagster.objects.bucket import Bucket
from docindex_dagster.stores.doctor import check, roll_back
from docindex_dagster.stores.generation import read_generation
from docindex_dagster.stores.publish import withdraw
from docindex_dagster.stores.reader import open_reader
from tests.conftest import chunks_of, publish_rows, vectors_of

KEY = "library/sample"


def publish(layout: Layout, text: str, source: str = KEY) -> None:
    chunks = chunks_of({"a.py": [f"{text} reads a file", "beta writes a file"]}, source)
    publish_rows(layout, source, chunks, vectors_of(chunks))


def found(layout: Layout) -> list[str]:
    """Return the texts that searches of a home can show."""
    reader = open_reader(layout)
    check(layout, reader.generation)
    return sorted(reader.table.search().limit(None).to_arrow()["text"].to_pylist())


def files(layout: Layout) -> set[str]:
    found = (path for path in layout.stores.rglob("*") if path.is_file() and path.suffix != ".lock")
    return {path.relative_to(layout.stores).as_posix() for path in found}


def test_a_replica_has_what_was_published_and_what_can_be_gone_back_to(
    bucket: Bucket, publisher: Layout, replica: Layout
) -> None:
    base = snapshots.pull(bucket, publisher)
    publish(publisher, "alpha")
    publish(publisher, "gamma")
    snapshots.push(bucket, publisher, base)
    snapshots.pull(bucket, replica)
    assert found(replica) == found(publisher) == ["beta writes a file", "gamma reads a file"]
    assert files(replica) == files(publisher)
    assert roll_back(replica).number == 1
    assert found(replica) == ["alpha reads a file", "beta writes a file"]


def test_a_publication_moves_what_it_adds_alone(bucket: Bucket, publisher: Layout, replica: Layout) -> None:
    publish(publisher, "alpha")
    first = snapshots.push(bucket, publisher, snapshots.pull(bucket, replica))
    publish(publisher, "gamma", "library/other")
    second = snapshots.push(bucket, publisher, first)
    old, new = ({content.name for content in manifest.files.values()} for manifest in (first, second))
    assert old & new
    assert {listed.name for listed in bucket.list(contents.FOLDER)} == old | new
    assert snapshots.push(bucket, publisher, second) == second


def test_of_two_publishers_the_later_one_is_refused_and_goes_on_from_the_other(
    bucket: Bucket, publisher: Layout, replica: Layout
) -> None:
    base = snapshots.pull(bucket, publisher)
    publish(publisher, "alpha")
    publish(replica, "gamma")
    snapshots.push(bucket, publisher, base)
    with pytest.raises(ConflictError):
        snapshots.push(bucket, replica, base)
    base = snapshots.pull(bucket, replica)
    assert found(replica) == ["alpha reads a file", "beta writes a file"]
    assert files(replica) == files(publisher)
    publish(replica, "delta")
    snapshots.push(bucket, replica, base)
    snapshots.pull(bucket, publisher)
    assert found(publisher) == ["beta writes a file", "delta reads a file"]


def test_a_publication_that_was_not_pushed_is_undone(bucket: Bucket, publisher: Layout) -> None:
    publish(publisher, "alpha")
    snapshots.push(bucket, publisher, snapshots.Manifest())
    publish(publisher, "gamma")
    snapshots.pull(bucket, publisher)
    assert found(publisher) == ["alpha reads a file", "beta writes a file"]


def test_a_rollback_gives_the_manifest_a_number_of_its_own(bucket: Bucket, publisher: Layout, replica: Layout) -> None:
    publish(publisher, "alpha")
    first = snapshots.push(bucket, publisher, snapshots.Manifest())
    publish(publisher, "gamma")
    second = snapshots.push(bucket, publisher, first)
    roll_back(publisher)
    third = snapshots.push(bucket, publisher, second)
    assert [manifest.number for manifest in (first, second, third)] == [1, 2, 3]
    assert len({manifest.tag for manifest in (first, second, third)}) == 3
    snapshots.pull(bucket, replica)
    assert found(replica) == ["alpha reads a file", "beta writes a file"]


def test_a_reader_that_is_open_goes_on_while_its_home_follows(
    bucket: Bucket, publisher: Layout, replica: Layout
) -> None:
    publish(publisher, "alpha")
    first = snapshots.push(bucket, publisher, snapshots.Manifest())
    snapshots.pull(bucket, replica)
    opened = open_reader(replica)
    publish(publisher, "gamma")
    snapshots.push(bucket, publisher, first)
    snapshots.pull(bucket, replica)
    assert opened.searcher.num_docs == 2
    assert opened.table.count_rows() == 2
    assert open_reader(replica).generation.number == 2


def test_a_removed_source_leaves_replicas(bucket: Bucket, publisher: Layout, replica: Layout) -> None:
    publish(publisher, "alpha")
    publish(publisher, "gamma", "library/other")
    first = snapshots.push(bucket, publisher, snapshots.Manifest())
    withdraw(publisher, KEY)
    snapshots.push(bucket, publisher, first)
    snapshots.pull(bucket, replica)
    assert set(read_generation(replica).sources) == {"library/other"}


def test_current_is_the_last_file_that_comes(
    bucket: Bucket, publisher: Layout, replica: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(publisher, "alpha")
    first = snapshots.push(bucket, publisher, snapshots.Manifest())
    snapshots.pull(bucket, replica)
    publish(publisher, "gamma")
    snapshots.push(bucket, publisher, first)
    left = 3

    def download(self: Bucket, name: str, size: int, file: Path) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise ObjectStoreError("the network is gone")
        download_all(self, name, size, file)

    download_all = Bucket.download
    monkeypatch.setattr(Bucket, "download", download)
    with pytest.raises(ObjectStoreError, match="network"):
        snapshots.pull(bucket, replica)
    assert found(replica) == ["alpha reads a file", "beta writes a file"]
    monkeypatch.setattr(Bucket, "download", download_all)
    snapshots.pull(bucket, replica)
    assert found(replica) == ["beta writes a file", "gamma reads a file"]


def test_an_object_whose_bytes_changed_is_not_taken(bucket: Bucket, publisher: Layout, replica: Layout) -> None:
    publish(publisher, "alpha")
    manifest = snapshots.push(bucket, publisher, snapshots.Manifest())
    content = max(manifest.files.values(), key=lambda content: content.size)
    bucket.replace(content.name, b"something else", bucket.get(content.name).tag)
    with pytest.raises(ObjectStoreError, match="its hash does not match its name"):
        snapshots.pull(bucket, replica)
    assert not replica.current.exists()


def test_a_damaged_file_of_a_home_is_replaced_when_the_home_is_distrusted(bucket: Bucket, publisher: Layout) -> None:
    publish(publisher, "alpha")
    manifest = snapshots.push(bucket, publisher, snapshots.Manifest())
    file = publisher.stores / max(manifest.files, key=lambda path: manifest.files[path].size)
    data = file.read_bytes()
    file.unlink()
    file.write_bytes(bytes(len(data)))
    snapshots.force_verification(publisher)
    snapshots.pull(bucket, publisher)
    assert file.read_bytes() == data


@pytest.mark.parametrize("path", ["../../outside", "/outside"])
def test_a_manifest_that_leads_out_of_the_stores_is_refused(
    bucket: Bucket, publisher: Layout, replica: Layout, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(publisher, "alpha")
    honest = snapshots._encoded
    named = snapshots.Manifest(files={path: contents.Content("0", 1, "objects/x")}, pointers={"CURRENT": "{}"})
    bucket.replace(snapshots.MANIFEST, honest(named), None)
    with pytest.raises(ObjectStoreError, match="outside the stores"):
        snapshots.pull(bucket, replica)
