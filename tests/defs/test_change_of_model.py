"""A model change in Dagster: which runs the sensors request and what the catalog reports."""

import pytest

from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.stores.generation import read_generation, read_next
from tests.defs.conftest import CONFIG, KEY
from tests.defs.daemon import declare, published
from tests.defs.test_index_source import metadata
from tests.models import TinyEmbedder, offer

OTHER = "library/more"
BOTH = CONFIG + '[[source]]\nkind = "library"\nname = "more"\npath = "more"\n'


@pytest.fixture
def tiny(daemon, project, monkeypatch) -> TinyEmbedder:
    """Two sources indexed with the default model, and settings that now name another model."""
    (project.root / "more").mkdir()
    (project.root / "more" / "page.md").write_text("# More\n\nThere is more to say.\n")
    declare(project, BOTH)
    daemon.settle()
    model = TinyEmbedder()
    offer(monkeypatch, model)
    return model


def test_the_sensors_ask_for_each_source_once_though_no_file_and_no_setting_changed(daemon, project, tiny):
    assert sorted(daemon.settle()) == [OTHER, KEY]

    assert read_generation(project.layout).model == "tiny"
    assert daemon.asks_for() == []
    assert len(tiny.embedded) == len(set(tiny.embedded))


def test_they_do_not_ask_for_what_next_holds(daemon, project, tiny):
    assert project.index(KEY).success
    assert list(read_next(project.layout).sources) == [KEY]

    assert daemon.asks_for() == [OTHER]


def test_the_catalogue_and_the_stores_say_how_far_it_is(project, tiny):
    result = project.index(KEY)

    half_way = f"the index is migrating from {StaticEmbedder.name} to tiny: 1 of 2 sources are done"
    page = metadata(result, "index_catalog")
    assert page["change_of_model"] == f"{half_way}; waiting for {OTHER}."
    assert "1 of 2 sources are done" in page["overview"]
    stores = metadata(result, "lancedb_table")
    assert (stores["takeover"], stores["warnings"].startswith(half_way)) == (half_way, True)
    checks = {event.check_name: event.passed for event in result.get_asset_check_evaluations()}
    assert checks["golden_query_finds_itself"]

    after = metadata(project.index(OTHER), "index_catalog")
    assert "change_of_model" not in after


def test_a_source_that_is_renamed_half_way_does_not_hold_up_the_takeover(daemon, project, tiny):
    project.index(OTHER)
    declare(project, BOTH.replace('name = "notes"', 'name = "renamed"'))

    asked = daemon.settle()

    assert "library/renamed" in asked
    assert f"-{KEY}" in asked
    assert published(project) == [OTHER, "library/renamed"]
    assert read_generation(project.layout).model == "tiny"
