"""Publication of prepared sources: all pending sources, each independently, and none twice."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from obstore.store import MemoryStore

from docindex_dagster.core import tables
from docindex_dagster.core.errors import ConflictError, LostLockError, SettingsError, SourceError, VerificationError
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import Settings, load_settings
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.objects import prepared, shared_stores, snapshots
from docindex_dagster.objects.bucket import Bucket
from docindex_dagster.objects.prepared import Prepared
from docindex_dagster.objects.shared_stores import SharedStores
from docindex_dagster.pipeline.source_run import SourceRun
from docindex_dagster.pipeline.stages import OURS
from docindex_dagster.runner.prepared import Published, publish_prepared
from docindex_dagster.runner.run import index, run_stages
from docindex_dagster.search.service import Request, hits_of
from docindex_dagster.sources import registry
from docindex_dagster.sources.model import Source
from docindex_dagster.stores import maintenance
from docindex_dagster.stores.doctor import examine
from docindex_dagster.stores.generation import PublishedSource, read_generation
from docindex_dagster.stores.reader import open_reader

NAMES = ("one", "two")


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Bucket:
    shared = Bucket("memory", MemoryStore())
    monkeypatch.setattr(shared_stores, "configured_bucket", lambda _: shared)
    return shared


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Return the settings of a project with two libraries and shared stores."""
    declared = ""
    for name in NAMES:
        (tmp_path / name).mkdir()
        (tmp_path / name / "page.md").write_text(f"# Marmots of {name}\n\nThey whistle in valley {name}.\n")
        declared += f'[[source]]\nkind = "library"\nname = "{name}"\npath = "{name}"\n'
    (tmp_path / "docindex.toml").write_text(f'{declared}[storage]\nurl = "s3://bucket/prefix"\n')
    return load_settings(tmp_path)


def at(settings: Settings, home: str) -> Settings:
    """Return the same settings for another machine."""
    return settings.model_copy(update={"home": settings.root / home})


def prepare(settings: Settings, bucket: Bucket, key: str, *, full: bool = False) -> None:
    """Run all stages except the last, as a worker does."""
    run = SourceRun(settings, registry.find(settings, key), StaticEmbedder, is_full=full)
    base = prepared.read(bucket, prepared.pointer_name(key)) if full else prepared.pull(bucket, run.layout, key)
    run_stages(run, is_complete=True, selected=[stage.name for stage in OURS[:-1]])
    prepared.push(bucket, run.layout, key, base, "a worker", reupload=full)


@contextmanager
def opened(settings: Settings) -> Iterator[SharedStores]:
    with shared_stores.open_for_publishing(settings, None, "a publisher", pytest.fail) as stores:
        yield stores


def published(settings: Settings) -> list[Published]:
    with opened(settings) as stores:
        return [each for batch in publish_prepared(settings, stores, StaticEmbedder) for each in batch]


def sources(settings: Settings) -> Mapping[str, PublishedSource]:
    generation = read_generation(Layout(settings.home))
    return generation.sources if generation else {}


def test_what_workers_prepared_equals_an_index_of_one_machine(settings: Settings, bucket: Bucket) -> None:
    publisher, alone = at(settings, "publisher"), at(settings, "alone")
    for worker, name in (("w1", "one"), ("w2", "two")):
        prepare(at(settings, worker), bucket, f"library/{name}")
    assert [each.pointer.source for each in published(publisher)] == ["library/one", "library/two"]
    alone = alone.model_copy(update={"storage": alone.storage.model_copy(update={"url": None})})
    for name in NAMES:
        index(alone, registry.find(alone, name), StaticEmbedder())
    versions = [{key: entry.version for key, entry in sources(each).items()} for each in (publisher, alone)]
    assert versions[0] == versions[1] != {}
    assert list(examine(Layout(publisher.home))) == []


def test_the_declared_sources_are_read_once_for_all(
    settings: Settings, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in NAMES:
        prepare(at(settings, "w1"), bucket, f"library/{name}")
    found: list[Settings] = []
    reading = registry.sources

    def read(asked: Settings) -> dict[str, Source]:
        found.append(asked)
        return reading(asked)

    monkeypatch.setattr(registry, "sources", read)

    assert len(published(at(settings, "publisher"))) == len(NAMES)
    assert len(found) == 1


def test_nothing_is_published_twice(settings: Settings, bucket: Bucket) -> None:
    publisher = at(settings, "publisher")
    prepare(at(settings, "w1"), bucket, "library/one")
    assert len(published(publisher)) == 1
    with opened(publisher) as stores:
        number = stores.manifest.number
    assert published(publisher) == []
    with opened(publisher) as stores:
        assert stores.manifest.number == number


def test_a_publisher_with_an_empty_disk_goes_on_from_what_is_published(settings: Settings, bucket: Bucket) -> None:
    prepare(at(settings, "w1"), bucket, "library/one")
    published(at(settings, "publisher"))
    prepare(at(settings, "w1"), bucket, "library/two")
    other = at(settings, "another publisher")
    assert [each.pointer.source for each in published(other)] == ["library/two"]
    assert set(sources(other)) == {"library/one", "library/two"}
    assert open_reader(Layout(other.home)).generation.number == 2


def test_a_withdrawn_source_is_taken_out(settings: Settings, bucket: Bucket) -> None:
    publisher = at(settings, "publisher")
    for name in NAMES:
        prepare(at(settings, "w1"), bucket, f"library/{name}")
    published(publisher)
    prepared.withdraw(bucket, "library/one", "a user")
    (done,) = published(publisher)
    assert done.outcome is None
    assert done.refusal is None
    assert set(sources(publisher)) == {"library/two"}
    assert not Layout(publisher.home).table("chunks", "library/one").exists()


def test_tables_that_break_a_rule_are_refused_once_and_stop_no_other_source(settings: Settings, bucket: Bucket) -> None:
    publisher, worker = at(settings, "publisher"), at(settings, "w1")
    for name in NAMES:
        prepare(worker, bucket, f"library/{name}")
    layout = Layout(worker.home)
    base = prepared.pull(bucket, layout, "library/one")
    vectors = tables.read(layout.table("embeddings", "library/one"))
    layout.table("embeddings", "library/one").unlink()
    tables.write(layout.table("embeddings", "library/one"), vectors.slice(0, 0).replace_schema_metadata(None))
    prepared.push(bucket, layout, "library/one", base, "a worker")
    done = {each.pointer.source: each for each in published(publisher)}
    assert isinstance(done["library/one"].refusal, VerificationError)
    assert done["library/two"].refusal is None
    assert set(sources(publisher)) == {"library/two"}
    assert published(publisher) == []
    prepare(worker, bucket, "library/one")
    assert [each.refusal for each in published(publisher)] == [None]
    assert published(publisher) == []


def test_a_table_that_is_lost_stops_no_other_source_and_a_run_in_full_brings_it_back(
    settings: Settings, bucket: Bucket
) -> None:
    publisher, key = at(settings, "publisher"), "library/one"
    for name in NAMES:
        prepare(at(settings, "w1"), bucket, f"library/{name}")
    bucket.delete([next(iter(prepared.read(bucket, prepared.pointer_name(key)).files.values())).name])
    done = {each.pointer.source: each for each in published(publisher)}
    assert "is missing: index the source in full" in str(done[key].refusal)
    assert set(sources(publisher)) == {"library/two"}
    assert published(publisher) == []
    prepare(at(settings, "w2"), bucket, key, full=True)
    assert [each.refusal for each in published(publisher)] == [None]


def test_a_source_that_nobody_declares_is_refused(settings: Settings, bucket: Bucket) -> None:
    prepare(at(settings, "w1"), bucket, "library/one")
    settings.config_file.write_text('[storage]\nurl = "s3://bucket/prefix"\n')
    (done,) = published(at(load_settings(settings.root), "publisher"))
    assert isinstance(done.refusal, SourceError)


def test_a_publisher_that_was_overtaken_publishes_nothing(settings: Settings, bucket: Bucket) -> None:
    slow, quick = at(settings, "slow"), at(settings, "quick")
    prepare(at(settings, "w1"), bucket, "library/one")
    with opened(slow) as stores:
        batches = publish_prepared(slow, stores, StaticEmbedder)
        published(quick)
        with pytest.raises(ConflictError):
            list(batches)
    assert published(slow) == []
    assert set(sources(slow)) == {"library/one"}


def test_a_publisher_that_lost_its_lock_publishes_nothing(settings: Settings, bucket: Bucket) -> None:
    class Lost:
        def __call__(self, text: str) -> None:
            """Ignore progress messages."""

        def check(self) -> None:
            raise LostLockError("the session was ended")

    publisher = at(settings, "publisher")
    prepare(at(settings, "w1"), bucket, "library/one")
    with opened(publisher) as stores:
        stores.lock = Lost()
        with pytest.raises(LostLockError):
            list(publish_prepared(publisher, stores, StaticEmbedder))
    assert snapshots.read(bucket) is None
    assert [each.pointer.source for each in published(publisher)] == ["library/one"]


def test_stores_that_are_damaged_come_from_the_object_store(settings: Settings, bucket: Bucket) -> None:
    publisher = at(settings, "publisher")
    prepare(at(settings, "w1"), bucket, "library/one")
    published(publisher)
    for file in (publisher.home / "stores" / "tantivy").rglob("*.store"):
        data = file.read_bytes()
        file.unlink()
        file.write_bytes(bytes(len(data)))
    shutil.rmtree(publisher.home / "stores" / "lance")
    prepare(at(settings, "w1"), bucket, "library/two")
    assert [each.refusal for each in published(publisher)] == [None]
    assert list(examine(Layout(publisher.home))) == []


def test_what_was_stored_and_not_published_before_a_damage_was_met_is_published_all_the_same(
    settings: Settings, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher = at(settings, "publisher")
    for name in NAMES:
        prepare(at(settings, "w1"), bucket, f"library/{name}")
    published(publisher)
    for name in NAMES:
        (settings.root / name / "page.md").write_text("# Marmots\n\nThey hibernate.\n")
        prepare(at(settings, "w1"), bucket, f"library/{name}")
    before = sources(publisher)
    note = SharedStores.note

    def note_and_damage(stores: SharedStores, pointer: Prepared, **options: bool) -> None:
        note(stores, pointer, **options)
        monkeypatch.undo()
        shutil.rmtree(publisher.home / "stores" / "lance")

    with opened(publisher) as stores:
        monkeypatch.setattr(SharedStores, "note", note_and_damage)
        done = [each for batch in publish_prepared(publisher, stores, StaticEmbedder) for each in batch]
    assert [each.pointer.source for each in done] == ["library/one", "library/two"]
    assert all(entry.version != before[key].version for key, entry in sources(publisher).items())
    assert list(examine(Layout(publisher.home))) == []


def test_the_stores_are_maintained_for_all_machines(
    settings: Settings, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "_MAX_VERSIONS", 3)
    publisher = at(settings, "publisher")
    for number in range(4):
        (settings.root / "one" / "page.md").write_text(f"# Marmots\n\nThey whistle {number} times.\n")
        prepare(at(settings, "w1"), bucket, "library/one")
        published(publisher)
    replica = Layout(settings.root / "replica")
    snapshots.pull(bucket, replica)
    generation = read_generation(replica)
    assert generation == read_generation(Layout(publisher.home))
    assert generation.optimized_version > 0
    assert list(examine(replica, has_tables=False)) == []


def test_a_program_cannot_write_stores_that_others_share(settings: Settings) -> None:
    with pytest.raises(SettingsError, match="run `docindex index` instead"):
        index(settings, registry.find(settings, "one"), StaticEmbedder())


def test_what_is_published_is_searched(settings: Settings, bucket: Bucket) -> None:
    publisher = at(settings, "publisher")
    prepare(at(settings, "w1"), bucket, "library/one")
    published(publisher)
    reader = open_reader(Layout(publisher.home))
    hits = hits_of(publisher, reader, Request("marmots whistle"))
    assert [hit.path for hit in hits] == ["page.md"]
