"""A machine that shares tables and stores: commands answer from the published index."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import Settings, load_settings
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.objects import prepared, shared_stores
from docindex_dagster.objects.bucket import open_bucket
from docindex_dagster.pipeline.source_run import SourceRun
from docindex_dagster.pipeline.stages import OURS
from docindex_dagster.runner.prepared import publish_prepared
from docindex_dagster.runner.run import run_stages
from docindex_dagster.sources import registry
from docindex_dagster.status.catalog import entries, rebuild
from tests.cli.conftest import Run
from tests.objects import s3

URL = "s3://bucket/prefix"
KEY = "library/manual"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[s3.S3]:
    with s3.serving() as held:
        for name, value in s3.environment(held).items():
            monkeypatch.setenv(name, value)
        yield held


@pytest.fixture
def shared(tmp_path: Path, run: Run, server: s3.S3) -> Settings:
    """Settings of a project whose manual was indexed and published by other machines."""
    with (tmp_path / "docindex.toml").open("a") as file:
        file.write(f'[[source]]\nkind = "library"\npath = "manual"\n[storage]\nurl = "{URL}"\n')
    settings = load_settings(tmp_path)
    publish(settings)
    return settings


def publish(settings: Settings) -> None:
    """Run the work of a worker, then of the publisher."""
    worker, publisher = (settings.model_copy(update={"home": settings.root / name}) for name in ("worker", "publisher"))
    run = SourceRun(worker, registry.find(settings, KEY), StaticEmbedder)
    base = prepared.pull(open_bucket(URL), run.layout, KEY)
    run_stages(run, is_complete=True, selected=[stage.name for stage in OURS[:-1]])
    prepared.push(open_bucket(URL), run.layout, KEY, base, "a worker")
    with shared_stores.open_for_publishing(publisher, None, "a publisher", pytest.fail) as stores:
        done = publish_prepared(
            publisher, stores, StaticEmbedder, before_push=lambda home: rebuild(home, "a publisher")
        )
        assert [each.refusal for batch in done for each in batch] == [None]


def edit(settings: Settings, text: str) -> None:
    page = next((settings.root / "manual").rglob("*.md"))
    page.write_text(page.read_text() + text)


def paths(run: Run, query: str) -> list[str]:
    found = run("search", query, "--json")
    assert found.code == 0, found.err
    return [hit["text"] for hit in json.loads(found.out)]


@pytest.mark.usefixtures("shared")
def test_a_machine_with_an_empty_disk_searches(run: Run) -> None:
    assert any("pump" in text for text in paths(run, "how is a pump primed"))
    assert KEY in run("status").out


def test_the_catalogue_comes_with_the_stores(run: Run, shared: Settings) -> None:
    paths(run, "pump")
    assert entries(Layout(shared.home)) == entries(Layout(shared.root / "publisher"))
    assert Layout(shared.home).catalog.read_bytes() == Layout(shared.root / "publisher").catalog.read_bytes()


def test_what_is_published_later_is_found(run: Run, shared: Settings) -> None:
    paths(run, "pump")
    edit(shared, "\n## Marmots\n\nMarmots whistle when an eagle comes.\n")
    publish(shared)
    assert any("eagle" in text for text in paths(run, "marmots whistle eagle"))


def test_a_rollback_counts_for_all_machines(run: Run, shared: Settings) -> None:
    edit(shared, "\n## Marmots\n\nMarmots whistle when an eagle comes.\n")
    publish(shared)
    done = run("rollback")
    assert done.code == 0, done.err
    assert "restored generation 1" in done.out
    other = shared.model_copy(update={"home": shared.root / "another machine"})
    with shared_stores.open_for_publishing(other, None, "a look", pytest.fail) as stores:
        assert json.loads(stores.manifest.pointers["CURRENT"])["number"] == 1
    assert not any("eagle" in text for text in paths(run, "marmots whistle eagle"))


def test_doctor_looks_at_the_stores_and_at_the_object_store(run: Run, shared: Settings, server: s3.S3) -> None:
    assert "the index is consistent" in run("doctor").out
    pointer = prepared.read(open_bucket(URL), prepared.pointer_name(KEY))
    open_bucket(URL).delete([next(iter(pointer.files.values())).name])
    found = run("doctor")
    assert found.code == 1
    assert f"{KEY}: object store: 1 of its tables are missing or truncated: index it in full" in found.out
    server.objects["/bucket/prefix/cells/0/CURRENT"] = b"damaged"
    assert "cells/0/CURRENT is damaged" in run("doctor").out


@pytest.mark.usefixtures("shared")
def test_prune_looks_into_the_object_store(run: Run) -> None:
    for options in (("--dry-run",), ()):
        done = run("prune", *options)
        assert done.code == 0, done.err
        assert "0 objects in the object store" in done.out
    assert json.loads(run("prune", "--json").out)["objects"] == []


@pytest.mark.usefixtures("shared")
def test_a_machine_that_has_the_url_alone_searches(
    run: Run, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("empty"))
    monkeypatch.setenv("DOCINDEX_STORAGE__URL", URL)
    assert any("pump" in text for text in paths(run, "how is a pump primed"))
    assert "def prime_pump" in run("show", "pump.py").out


def test_without_an_answer_searches_go_on_and_warn(run: Run, shared: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shared.storage.url == URL
    paths(run, "pump")
    monkeypatch.setattr("docindex_dagster.objects.bucket._MAX_RETRIES", 0)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    found = run("search", "pump")
    assert found.code == 0
    assert "searches use the last downloaded index" in found.err


def test_the_status_says_nothing_of_changes_since_for_the_tables_are_elsewhere(run: Run, shared: Settings) -> None:
    rows = json.loads(run("status", "--json", "--check").out)

    assert [(row["source"], row["is_current"]) for row in rows] == [(KEY, None)]
