"""Tests that the Grafana dashboard uses only existing metrics; `make test-prometheus` checks it with real data."""

from pathlib import Path

import pytest

from tests.serving.telemetry import dashboard
from tests.serving.telemetry.conftest import families, serving


@pytest.fixture(scope="module")
def names(indexed: Path) -> set[str]:
    """Return the metrics of an application that has received no requests yet."""
    with serving(indexed) as client:
        return {name for name, _, _ in families(client.get("/metrics").text)}


@pytest.mark.parametrize(("title", "expression"), [*dashboard.expressions()])
def test_each_metric_of_an_expression_is_reported(names, title, expression):
    asked = dashboard.metrics_of(expression)
    assert asked
    assert asked <= names


def test_each_metric_of_ours_is_shown(names):
    ours = {name for name in names if name.startswith("docindex_")}
    shown = {name for _, expression in dashboard.expressions() for name in dashboard.metrics_of(expression)}

    assert ours - shown == set()


def test_panels_do_not_cover_each_other_and_have_a_row():
    panels = dashboard.load()["panels"]
    cells = [
        (x, y)
        for panel in panels
        for place in [panel["gridPos"]]
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]

    assert len(cells) == len(set(cells))
    assert [panel["title"] for panel in panels if panel["type"] == "row"] == [
        *("Traffic", "Latency", "Index", "Jobs", "Process", "Memory of agents"),
    ]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert all(panel.get("description") for panel in panels if panel["type"] != "row")


def test_the_source_of_the_data_is_a_variable():
    found = dashboard.load()

    assert found["templating"]["list"][0]["type"] == "datasource"
    of_targets = [target["datasource"] for panel in found["panels"] for target in panel.get("targets", ())]
    assert all(one == {"type": "prometheus", "uid": "${datasource}"} for one in of_targets)
