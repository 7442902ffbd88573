"""Dagster's view of the pipeline: any change appears in the diff of `asset_graph.json`."""

import json
import math
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import dagster as dg

from docindex_dagster.cli.dagster_runs import dagster_home
from docindex_dagster.core.settings import load_settings
from docindex_dagster.definitions import build_definitions

SNAPSHOT = Path(__file__).parent / "asset_graph.json"
ROOT = Path(__file__).parents[2]


def asset_graph() -> dict[str, Any]:
    graph = build_definitions(ROOT).resolve_asset_graph()
    return {
        node.key.to_user_string(): {
            "depends_on": sorted(key.to_user_string() for key in node.parent_keys),
            "group": node.group_name,
            "kinds": sorted(node.kinds),
            "partitions": getattr(node.partitions_def, "name", None),
            "code_version": node.code_version,
            "is_external": not node.is_materializable,
            "checks": sorted(key.name for key in graph.get_check_keys_for_assets({node.key})),
        }
        for node in graph.asset_nodes
    }


def test_the_asset_graph_is_the_one_in_the_snapshot():
    # To accept a change: python -m tests.defs.test_definitions
    assert asset_graph() == json.loads(SNAPSHOT.read_text())


def test_everything_that_a_user_sees_is_described():
    definitions = build_definitions(ROOT)
    repository = definitions.get_repository_def()
    graph = definitions.resolve_asset_graph()

    assert all(node.description for node in graph.asset_nodes)
    assert all(graph.get_check_spec(key).description for key in graph.asset_check_keys)
    assert all(sensor.description for sensor in repository.sensor_defs)
    assert all(schedule.description for schedule in repository.schedule_defs)
    assert all(definitions.resolve_job_def(name).description for name in ("index_source", "remove_source"))


def descriptions() -> Iterator[str]:
    """Return every text that the UI shows for a definition, in one line."""
    definitions = build_definitions(ROOT)
    repository = definitions.get_repository_def()
    graph = definitions.resolve_asset_graph()
    found = [
        *(node.description for node in graph.asset_nodes),
        *(graph.get_check_spec(key).description for key in graph.asset_check_keys),
        *(job.description for job in repository.get_all_jobs()),
        *(sensor.description for sensor in repository.sensor_defs),
        *(schedule.description for schedule in repository.schedule_defs),
    ]
    return (" ".join(text.split()) for text in found if text)


def test_descriptions_lead_to_pages_that_exist():
    named = {page for text in descriptions() for page in re.findall(r"docs/[\w./-]+\.md", text)}

    assert named
    assert [page for page in named if not (ROOT / page).is_file()] == []


def test_every_asset_and_check_says_where_to_read_more():
    graph = build_definitions(ROOT).resolve_asset_graph()
    nodes = {node.key.to_user_string(): node.description for node in graph.asset_nodes}
    checks = {str(key): graph.get_check_spec(key).description for key in graph.asset_check_keys}

    assert [name for name, text in {**nodes, **checks}.items() if "docs/" not in (text or "")] == []


def test_definitions_are_loadable():
    dg.Definitions.validate_loadable(build_definitions(ROOT))


def test_loading_definitions_imports_no_heavy_library():
    code = (
        "import sys; from docindex_dagster.definitions import build_definitions; build_definitions();"
        "heavy = {'lancedb', 'tantivy', 'tree_sitter', 'networkx', 'docutils', 'alembic'};"
        "print(*heavy & set(sys.modules))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True).stdout

    assert loaded.split() == []


def test_the_project_and_other_folders_get_the_same_instance_settings(tmp_path, monkeypatch):
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    monkeypatch.setenv("DOCINDEX_HOME", str(tmp_path / "home"))
    ours = (dagster_home(load_settings(ROOT)) / "dagster.yaml").read_text()

    theirs = (dagster_home(load_settings(tmp_path)) / "dagster.yaml").read_text()

    assert ours == theirs


def test_the_sensors_on_sources_seldom_tick_together():
    sensors = {sensor.name: sensor for sensor in build_definitions(ROOT).sensors}
    names = ("sources_changed", "library_files_changed", "git_head_changed")
    intervals = [sensors[name].minimum_interval_seconds or 0 for name in names]

    assert all(math.gcd(one, other) == 5 for one, other in combinations(intervals, 2))  # Dagster's polling interval


if __name__ == "__main__":
    SNAPSHOT.write_text(json.dumps(asset_graph(), indent=1, sort_keys=True) + "\n")
