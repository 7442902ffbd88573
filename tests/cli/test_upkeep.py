"""`docindex doctor`, `rollback` and `prune`."""

import json
from pathlib import Path


def test_damage_is_a_line_for_a_search_and_a_repair_for_the_doctor(run):
    run("index", "manual")
    for file in Path(".docindex/stores/tantivy").rglob("*.term"):
        file.write_bytes(file.read_bytes()[:40])

    assert len(run("search", "pump").err.splitlines()) == 1
    assert "doctor --repair" in run("search", "pump").err
    repaired = json.loads(run("doctor", "--repair", "--json").out)
    assert repaired["findings"]
    assert repaired["left"] == []
    assert "pump.py" in run("search", "pump").out


def test_a_rollback_brings_the_generation_before_back_and_a_second_one_undoes_it(run):
    run("index", "manual")
    assert "no generation before" in run("rollback").err
    Path("manual/guide.md").write_text("# Guide\n\nThe windmill lifts the water now, all day and all night.\n")
    run("index")

    def finds_windmill() -> bool:
        return "windmill" in run("search", "windmill", "--mode", "bm25").out

    assert finds_windmill()
    assert run("rollback").code == 0
    assert not finds_windmill()
    assert run("rollback").code == 0
    assert finds_windmill()
    run("rollback")
    assert run("index").code == 0
    assert finds_windmill()
    assert run("doctor").code == 0


def test_the_doctor_repairs_a_damaged_store(run):
    run("index", "manual")
    assert run("doctor").out == "the index is whole: all stores agree\n"
    (graph,) = Path(".docindex/stores/graph").glob("*.triples.parquet")
    graph.write_bytes(b"not parquet")

    broken = run("doctor")
    assert broken.code == 1
    assert "library/manual: graph" in broken.out
    assert run("doctor", "--repair").code == 0
    assert run("doctor").code == 0


def test_pruning_gives_back_the_rows_of_a_source_that_is_gone(run):
    run("index", "manual")
    table = Path(".docindex/tables/chunks/library%2Fmanual.parquet")
    stranger = table.with_name("library%2Fgone.parquet")
    stranger.write_bytes(table.read_bytes())

    assert "library%2Fgone.parquet" in run("prune", "--dry-run").out
    assert stranger.exists()
    assert "freed " in run("prune").out
    assert not stranger.exists()
    assert run("doctor").code == 0
    assert "guide.md" in run("search", "prime the pump").out


def test_what_a_rollback_took_away_is_counted_when_it_comes_back(run):
    run("index", "manual")
    Path("manual/new.md").write_text("# New\n\nA page about marmots and their burrows.\n")
    run("index")
    run("rollback")

    (summary,) = json.loads(run("index", "--json").out)

    assert summary["added"] == 1


def damage_index() -> None:
    """Empty a file of the published index; hard links of the generation before keep theirs."""
    generation = json.loads(Path(".docindex/stores/CURRENT").read_text())
    for file in Path(".docindex/stores/tantivy", generation["tantivy"]).glob("*.fieldnorm"):
        file.unlink()
        file.touch()


def test_a_run_without_changes_says_that_the_stores_are_damaged(run):
    run("index", "manual")
    damage_index()

    output = run("index")

    assert output.code == 1
    assert output.err.count("run `docindex doctor --repair`") == 1


def test_a_rollback_to_a_damaged_generation_is_refused_in_a_line(run):
    run("index", "manual")
    Path("manual/new.md").write_text("# New\n\nA page about marmots and their burrows.\n")
    run("index")
    run("rollback")
    damage_index()
    assert "nothing found" not in run("rollback").out

    refused = run("rollback")

    assert refused.code == 1
    assert len(refused.err.splitlines()) == 1
    assert "cannot be gone back to" in refused.err
    assert "marmots" in run("search", "marmots", "--mode", "bm25").out


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
    assert repaired.out.endswith("the index is whole: all stores agree\n")
    assert "pump.py" in run("search", "prime_pump", "--mode", "bm25").out
    assert "page.md" in run("search", "valves", "--mode", "bm25").out
