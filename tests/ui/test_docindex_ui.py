"""A first day with `docindex ui` in a browser. Each test is a step that builds on the previous ones."""

import json
import re
import shutil

import pytest
from playwright.sync_api import Page, expect

from tests.ui import dagster_pages as ui
from tests.ui import pictures
from tests.ui.conftest import Project

pytestmark = pytest.mark.ui

NOTES, CODE = "library/docindex-docs", "git/docindex"
BY_HAND = "library/by-hand"
BROKEN, NOWHERE = "git/app", "file:///srv/git/team/app.git"
WITHOUT_CHECKS = ("discovered_files", "commits", "references")
WITH_CHECKS = ("chunks", "embeddings", "lancedb_table", "tantivy_index", "knowledge_graph")
ASSETS = ("source", *WITHOUT_CHECKS, *WITH_CHECKS, "index_catalog")


def test_the_lineage_shows_the_assets_before_there_is_a_source(page: Page):
    ui.open_lineage(page)
    for asset in ASSETS:
        expect(ui.node(page, asset)).to_be_visible()
    expect(ui.node(page, "index_catalog")).to_contain_text("Never materialized")


def test_a_source_that_is_added_gets_a_partition_and_a_run_by_itself(project: Project, page: Page):
    # Add them one by one: the lineage counts a check of the most recently planned run only if that run also
    # materialized the asset last. Concurrent runs may finish in either order.
    for key, folder in ((NOTES, project.notes), (CODE, project.code)):
        assert f"added {key}" in project.docindex("source", "add", str(folder))
        ui.open_runs(page, key)
        ui.see(page, page.get_by_text("Success", exact=True).first)
        expect(page.locator("a[href*='/sensors/']").first).to_be_visible()  # the sensor that launched it


def test_all_assets_are_green_and_their_checks_passed(page: Page):
    ui.open_lineage(page)
    for asset in (*WITHOUT_CHECKS, *WITH_CHECKS):
        expect(ui.node(page, asset)).to_contain_text("100% filled")
        expect(ui.node(page, asset)).to_contain_text("2 partitions")
    for asset in (*WITH_CHECKS, "index_catalog"):
        expect(ui.node(page, asset)).to_contain_text(re.compile(r"checks\s*(\d+) / \1 Passed"))
    expect(ui.node(page, "index_catalog")).to_contain_text("Materialized")
    pictures.of_lineage(page)


def test_chunks_shows_its_numbers_a_sample_and_its_checks(project: Project, page: Page):
    indexed = {row["source"]: row for row in json.loads(project.docindex("status", "--json"))}
    ui.open_partition(page, "chunks", CODE)
    numbers = {"dagster/partition_row_count": indexed[CODE]["chunks"], "files": indexed[CODE]["files"], "commits": 2}
    for name, number in numbers.items():
        expect(ui.metadata(page, name).get_by_role("cell", name=str(number), exact=True)).to_be_visible()
    sample = ui.metadata(page, "sample")
    for column in ("path", "start_line", "end_line", "chunk_type", "qualified_name"):
        expect(sample.get_by_text(column, exact=True).first).to_be_visible()
    expect(sample).to_contain_text("README.md")
    ui.open_checks(page, "chunks")
    for check in ("files_are_covered", "ids_are_unique", "spans_are_in_their_file", "few_fallbacks"):
        expect(ui.outcome(page, check)).to_contain_text("Succeeded")
    pictures.of_chunks(page, CODE)


def test_one_partition_is_materialised_by_hand(page: Page):
    # Exclude assets with other partitions and those of the nightly evaluation.
    ui.open_lineage(page, 'not group:"memory" and not group:"evaluation"')
    page.get_by_role("button", name="Materialize all").click()
    dialog = page.get_by_role("dialog").filter(has_text="Launch runs to materialize 9 assets")
    dialog.get_by_text("Select a partition").click()
    page.get_by_role("menuitem", name=NOTES).click()
    page.get_by_role("button", name="Launch 1 run").click()
    run = ui.open_launched_run(page)
    ui.see(page, page.get_by_text("Success", exact=True).first)
    ui.open_partition(page, "chunks", NOTES)
    expect(page.get_by_role("link", name=run)).to_be_visible()


def test_what_a_command_indexed_is_shown_like_what_a_sensor_asked_for(project: Project, page: Page):
    folder = project.notes.with_name("by-hand")
    shutil.copytree(project.notes, folder)
    project.docindex("index", str(folder))

    ui.open_runs(page, BY_HAND)
    ui.see(page, page.get_by_text("Success", exact=True).first)
    ui.open_newest_run(page)
    page.get_by_role("button", name="View tags and config").click()
    expect(page.get_by_role("dialog").get_by_text("command line").first).to_be_visible()
    for asset in (*WITHOUT_CHECKS, *WITH_CHECKS):
        shown = {}
        for key in (NOTES, BY_HAND):
            ui.open_partition(page, asset, key)
            expect(page.get_by_text("Materialized", exact=True)).to_be_visible()
            shown[key] = ui.metadata_names(page)
        assert shown[NOTES] == shown[BY_HAND] != []
    ui.open_lineage(page)
    for asset in WITH_CHECKS:
        expect(ui.node(page, asset)).to_contain_text("3 partitions")
        expect(ui.node(page, asset)).to_contain_text(re.compile(r"checks\s*(\d+) / \1 Passed"))


def test_a_source_that_cannot_be_read_fails_alone_and_the_run_says_why(project: Project, page: Page):
    assert f"added {BROKEN}" in project.docindex("source", "add", NOWHERE)
    ui.open_runs(page, BROKEN)
    ui.see(page, page.get_by_text("Failure", exact=True).first)
    ui.open_newest_run(page)
    expect(page.get_by_text(f"cannot clone {NOWHERE}: ").first).to_be_visible()
    expect(page.get_by_text("does not appear to be a git repository").first).to_be_visible()
    ui.open_partition(page, "discovered_files", BROKEN)
    expect(page.get_by_text("failed, and did not materialize this asset")).to_be_visible()
    ui.open_partition(page, "discovered_files", CODE)
    expect(page.get_by_text("Materialized", exact=True)).to_be_visible()


def test_the_catalogue_says_what_failed_and_why(page: Page):
    page.goto("/assets/index_catalog")
    ui.see(page, page.get_by_text("1 of 4 sources needs attention"))
    for text in (BROKEN, "failed", f"cannot clone {NOWHERE}: "):
        expect(ui.metadata(page, "attention").get_by_text(text).first).to_be_visible()
    ui.open_checks(page, "index_catalog", "no_source_is_left_failed")
    expect(ui.outcome(page, "no_source_is_left_failed")).to_contain_text("Failed")
    expect(ui.metadata(page, "what to do")).to_contain_text("docindex index")
    pictures.of_catalogue(page)
