"""Shared stores: any machine prepares the tables of sources, and one run publishes them."""

import json
import subprocess
import sys
import time
from typing import Any

import dagster as dg

from docindex_dagster.defs.jobs import removal_config
from docindex_dagster.defs.tags import SOURCES_NAME
from docindex_dagster.objects import prepared
from tests.defs.conftest import CONFIG, GUIDE, KEY
from tests.defs.deployment import STORAGE

EVERYTHING = ["lancedb_table", "tantivy_index"]


def requested(ticked: Any) -> list[tuple[str | None, str | None]]:
    return [(request.job_name, request.partition_key) for request in ticked.run_requests or ()]


def test_what_a_worker_prepares_is_searchable_everywhere_once_the_publisher_has_run(deployment):
    made = deployment.run("worker", "index_source", KEY)
    assert made.success
    assert {event.asset_key.to_user_string() for event in made.get_asset_materialization_events()} == {
        "discovered_files",
        "commits",
        "chunks",
        "references",
        "embeddings",
        "knowledge_graph",
        "prepared_tables",
    }
    assert not (deployment.root / "worker" / "stores" / "CURRENT").exists()

    assert deployment.run("publisher", "publish_prepared").success

    assert deployment.found("search", "green button") == ["guide.md"]


def test_another_worker_goes_on_from_the_tables_of_the_first(deployment):
    assert deployment.run("one", "index_source", KEY).success
    second = deployment.run("two", "index_source", KEY)

    numbers = {
        event.materialization.asset_key.to_user_string(): event.materialization.metadata
        for event in second.get_asset_materialization_events()
    }
    assert numbers["embeddings"]["embedded"].value == 0
    assert numbers["prepared_tables"]["pointer"].value == 2


def test_a_publication_is_an_event_of_the_stores_with_its_checks_and_of_the_catalogue(deployment):
    deployment.run("worker", "index_source", KEY)
    assert deployment.run("publisher", "publish_prepared").success

    tables = deployment.instance.get_latest_materialization_event(dg.AssetKey("prepared_tables"))
    for asset in EVERYTHING:
        event = deployment.instance.get_latest_materialization_event(dg.AssetKey(asset)).asset_materialization
        assert event.partition == KEY
        assert event.metadata["dagster/partition_row_count"].value > 0
        assert event.tags["dagster/data_version"]
        made_from = event.tags["dagster/input_data_version/prepared_tables"]
        assert made_from == tables.asset_materialization.tags["dagster/data_version"]
    catalogue = deployment.instance.get_latest_materialization_event(dg.AssetKey("index_catalog"))
    assert catalogue.asset_materialization.metadata["sources"].value == 1
    definitions = deployment.at("publisher")
    keys = [
        key
        for key in definitions.get_repository_def().asset_graph.asset_check_keys
        if key.asset_key.to_user_string() in EVERYTHING
    ]
    assert len(keys) == 3
    summaries = deployment.instance.event_log_storage.get_latest_asset_check_execution_by_key(keys)
    assert {key.name for key in summaries} == {key.name for key in keys}


def test_the_sensor_asks_for_one_publication_of_what_is_pending(deployment):
    assert requested(deployment.tick("daemon", "prepared_changed")) == []
    deployment.run("worker", "index_source", KEY)

    ticked = deployment.tick("daemon", "prepared_changed")

    (request,) = ticked.run_requests
    assert request.tags["docindex/publisher"] == "true"
    assert request.tags["dagster-celery/queue"] == "docindex-publisher"
    assert json.loads(request.tags["dagster-ray/config"]) == {"resources": {"docindex-publisher": 1}}
    deployment.run("publisher", "publish_prepared", run_config=request.run_config, tags=request.tags)
    assert requested(deployment.tick("daemon", "prepared_changed")) == []
    waiting = dg.DagsterRun("publish_prepared", status=dg.DagsterRunStatus.NOT_STARTED, tags=request.tags)
    deployment.instance.add_run(waiting)
    deployment.run("worker", "index_source", KEY)
    assert requested(deployment.tick("daemon", "prepared_changed")) == []


def test_a_publication_that_keeps_failing_is_asked_for_each_five_minutes(deployment, monkeypatch):
    deployment.run("worker", "index_source", KEY)
    (request,) = deployment.tick("daemon", "prepared_changed").run_requests
    for _ in range(6):
        run = dg.DagsterRun("publish_prepared", status=dg.DagsterRunStatus.STARTED, tags=request.tags)
        deployment.instance.report_run_failed(deployment.instance.add_run(run))
    now = time.time()

    monkeypatch.setattr(time, "time", lambda: now + 250)
    assert requested(deployment.tick("daemon", "prepared_changed")) == []
    monkeypatch.setattr(time, "time", lambda: now + 310)
    assert len(requested(deployment.tick("daemon", "prepared_changed"))) == 1


def test_sensors_ask_the_pointer_whether_a_source_is_indexed_and_fetch_no_tables(deployment):
    deployment.run("worker", "index_source", KEY)

    ticked = deployment.tick("daemon", "library_files_changed")
    assert requested(ticked) == []
    (deployment.root / "notes" / "guide.md").write_text(GUIDE + "\nAnd one more line about marmots.\n")

    assert requested(deployment.tick("daemon", "library_files_changed", ticked.cursor)) == [(None, KEY)]
    assert not (deployment.root / "daemon" / "tables").exists()


def test_sensors_ask_for_a_source_whose_tables_were_made_with_other_settings(deployment):
    deployment.run("worker", "index_source", KEY)
    ticked = deployment.tick("daemon", "library_files_changed")
    settings = deployment.root / "docindex.toml"
    settings.write_text(settings.read_text() + "\n[chunking]\ntarget_tokens = 150\n")

    assert requested(deployment.tick("daemon", "library_files_changed", ticked.cursor)) == [(None, KEY)]
    deployment.run("worker", "index_source", KEY)
    assert requested(deployment.tick("daemon", "library_files_changed")) == []


def test_a_source_that_is_refused_makes_no_other_one_wait(deployment):
    deployment.run("worker", "index_source", KEY)
    settings = deployment.root / "docindex.toml"
    declared = settings.read_text()
    settings.write_text(STORAGE)
    assert not deployment.run("publisher", "publish_prepared").success
    settings.write_text(declared)

    deployment.run("worker", "index_source", KEY)

    assert len(deployment.tick("daemon", "prepared_changed").run_requests) == 1


def test_a_removed_source_leaves_the_stores_with_the_next_publication_and_is_not_added_again(deployment):
    deployment.run("worker", "index_source", KEY)
    deployment.run("publisher", "publish_prepared")
    before = deployment.tick("daemon", "sources_changed")

    assert deployment.run("worker", "remove_source", run_config=removal_config(KEY)).success

    assert deployment.instance.get_dynamic_partitions(SOURCES_NAME) == []
    assert requested(deployment.tick("daemon", "sources_changed", before.cursor)) == []
    assert prepared.read(deployment.bucket, prepared.pointer_name(KEY)).is_withdrawn
    assert len(deployment.tick("daemon", "prepared_changed").run_requests) == 1
    assert deployment.run("publisher", "publish_prepared").success
    assert deployment.found("search", "green button") == []
    assert requested(deployment.tick("daemon", "sources_changed", before.cursor)) == []


def test_tables_of_a_source_that_is_declared_no_more_are_not_published_and_the_run_fails_once(deployment):
    deployment.run("worker", "index_source", KEY)
    (deployment.root / "docindex.toml").write_text(STORAGE)

    failed = deployment.run("publisher", "publish_prepared")

    assert not failed.success
    assert deployment.run("publisher", "publish_prepared").success


def test_embedding_is_limited_on_all_machines_by_a_pool(deployment):
    definitions = deployment.at("worker")
    assert definitions.resolve_assets_def("embeddings").op.pool == "docindex_embedding"


def test_with_one_machine_nothing_of_this_is_imported(tmp_path):
    (tmp_path / "docindex.toml").write_text(CONFIG)
    program = (
        "import sys; from pathlib import Path; from docindex_dagster.definitions import build_definitions\n"
        "build_definitions(Path(sys.argv[1]))\n"
        "foreign = ('obstore', 'psycopg2', 'docindex_dagster.objects.bucket')\n"
        "print([name for name in sys.modules if name.startswith(foreign)])"
    )

    done = subprocess.run([sys.executable, "-c", program, tmp_path], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"
