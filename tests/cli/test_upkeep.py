"""`docindex doctor`, `rollback` and `prune`."""

import json
from pathlib import Path

from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import exclusive_if_free
from tests.traces import hiding_places, traces


def test_damage_is_a_line_for_a_search_and_a_repair_for_the_doctor(run_indexed):
    for file in Path(".docindex/stores/tantivy").rglob("*.term"):
        file.write_bytes(file.read_bytes()[:40])

    assert len(run_indexed("search", "pump").err.splitlines()) == 1
    assert "doctor --repair" in run_indexed("search", "pump").err
    repaired = json.loads(run_indexed("doctor", "--repair", "--json").out)
    assert repaired["findings"]
    assert repaired["left"] == []
    assert "pump.py" in run_indexed("search", "pump").out


def test_a_rollback_brings_the_generation_before_back_and_a_second_one_undoes_it(run_indexed):
    assert "no previous generation" in run_indexed("rollback").err
    Path("manual/guide.md").write_text("# Guide\n\nThe windmill lifts the water now, all day and all night.\n")
    run_indexed("index")

    def finds_windmill() -> bool:
        return "windmill" in run_indexed("search", "windmill", "--mode", "bm25").out

    assert finds_windmill()
    assert run_indexed("rollback").code == 0
    assert not finds_windmill()
    assert run_indexed("rollback").code == 0
    assert finds_windmill()
    run_indexed("rollback")
    assert run_indexed("index").code == 0
    assert finds_windmill()
    assert run_indexed("doctor").code == 0


def test_the_doctor_repairs_a_damaged_store(run_indexed):
    assert run_indexed("doctor").out == "the index is consistent: all stores agree\n"
    (graph,) = Path(".docindex/stores/graph").glob("*.triples.parquet")
    graph.write_bytes(b"not parquet")

    broken = run_indexed("doctor")
    assert broken.code == 1
    assert "library/manual: graph" in broken.out
    assert run_indexed("doctor", "--repair").code == 0
    assert run_indexed("doctor").code == 0


def test_pruning_gives_back_the_rows_of_a_source_that_is_gone(run_indexed):
    table = Path(".docindex/tables/chunks/library%2Fmanual.parquet")
    stranger = table.with_name("library%2Fgone.parquet")
    stranger.write_bytes(table.read_bytes())

    assert "library%2Fgone.parquet" in run_indexed("prune", "--dry-run").out
    assert stranger.exists()
    assert "freed " in run_indexed("prune").out
    assert not stranger.exists()
    assert run_indexed("doctor").code == 0
    assert "guide.md" in run_indexed("search", "prime the pump").out


def test_what_a_rollback_took_away_is_counted_when_it_comes_back(run_indexed):
    Path("manual/new.md").write_text("# New\n\nA page about marmots and their burrows.\n")
    run_indexed("index")
    run_indexed("rollback")

    (summary,) = json.loads(run_indexed("index", "--json").out)

    assert summary["added"] == 1


def damage_index() -> None:
    """Empty a file of the published index; hard links in the previous generation keep their content."""
    generation = json.loads(Path(".docindex/stores/CURRENT").read_text())
    for file in Path(".docindex/stores/tantivy", generation["tantivy"]).glob("*.fieldnorm"):
        file.unlink()
        file.touch()


def test_a_run_without_changes_says_that_the_stores_are_damaged(run_indexed):
    damage_index()

    output = run_indexed("index")

    assert output.code == 1
    assert output.err.count("run `docindex doctor --repair`") == 1


def test_a_rollback_to_a_damaged_generation_is_refused_in_a_line(run_indexed):
    Path("manual/new.md").write_text("# New\n\nA page about marmots and their burrows.\n")
    run_indexed("index")
    run_indexed("rollback")
    damage_index()
    assert "nothing found" not in run_indexed("rollback").out

    refused = run_indexed("rollback")

    assert refused.code == 1
    assert len(refused.err.splitlines()) == 1
    assert "cannot roll back to generation" in refused.err
    assert "marmots" in run_indexed("search", "marmots", "--mode", "bm25").out


def test_a_repair_needs_no_source_that_is_gone_and_says_each_thing_once(run):
    Path("other").mkdir()
    Path("other/page.md").write_text("# Other\n\nQuite another page about valves.\n")
    run("index", "manual", "other")
    Path("manual").rename("moved")
    damage_index()

    repaired = run("doctor", "--repair")

    assert repaired.code == 0
    assert "docindex doctor --repair" not in repaired.out + repaired.err
    assert "warning: library/manual: " in repaired.err
    assert repaired.out.endswith("the index is consistent: all stores agree\n")
    assert "pump.py" in run("search", "prime_pump", "--mode", "bm25").out
    assert "page.md" in run("search", "valves", "--mode", "bm25").out


def test_erasing_leaves_no_trace_of_a_file_that_is_gone(run_indexed):
    home = Path(".docindex")
    Path("manual/guide.md").write_text("# Guide\n\nTurn the valve xkqzvwjhpfmbtrgd to the left before the winter.\n")
    run_indexed("index")
    Path("manual/guide.md").unlink()
    run_indexed("index")
    assert traces(home, "xkqzvwjhpfmbtrgd") != set()

    with exclusive_if_free(Layout(home).source_lock("library/manual"), "a run"):
        busy = run_indexed("prune", "--erase")
    assert (busy.code, "some texts are not erased yet" in busy.err) == (1, True)
    assert run_indexed("prune", "--erase").code == 0

    assert traces(home, "xkqzvwjhpfmbtrgd") == set()
    assert hiding_places(home) == []
    assert json.loads(run_indexed("status", "--json").out)[0]["last_run"] == "succeeded"


def test_the_doctor_reads_the_file_of_dagsters_instance(run_indexed, tmp_path):
    (tmp_path / "dagster.yaml").write_text("storage: {postgres: {postgres_url: 'postgresql://user:secret@host/db'}}\n")

    shown = run_indexed("doctor")

    assert shown.code == 1
    assert "dagster.yaml: storage.postgres: SQLAlchemy" in shown.out
    assert "secret" not in shown.out
