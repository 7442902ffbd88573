"""`docindex index`: a folder, several folders, a single file; runs that wait, are interrupted, or were killed."""

import json
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from docindex_dagster.cli import dagster_runs
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import exclusive
from docindex_dagster.core.settings import load_settings
from docindex_dagster.runner import journal
from docindex_dagster.runner.entries import State
from docindex_dagster.sources import config_edits
from docindex_dagster.stores import link_files, maintenance
from docindex_dagster.stores.generation import read_generation


def test_a_folder_is_indexed_and_searched_with_two_commands(run):
    indexed = run("index", "manual")
    assert indexed.code == 0
    assert "library/manual: 2 files" in indexed.out

    found = json.loads(run("search", "prime", "pump", "--json").out)

    assert {hit["path"] for hit in found} == {"guide.md", "pump.py"}
    assert {signal["name"] for signal in found[0]["signals"]} >= {"bm25", "vector"}


def test_a_folder_that_another_process_has_just_declared_is_indexed(run, monkeypatch):
    editing = config_edits._editing

    def editing_after_another(root):
        monkeypatch.setattr(config_edits, "_editing", editing)
        assert config_edits.declare(root, "manual") == ["library/manual"]
        return editing(root)

    monkeypatch.setattr(config_edits, "_editing", editing_after_another)

    indexed = run("index", "manual")

    assert indexed.code == 0
    assert "library/manual: 2 files" in indexed.out


def test_indexing_again_says_that_nothing_changed(run_indexed):
    assert "nothing changed" in run_indexed("index").out


def recorded_runs(project: Path) -> int:
    """Return the runs in Dagster and in the journal."""
    settings = load_settings(project)
    with dagster_runs.instance(settings) as instance:
        return instance.get_runs_count() + len([*journal.runs(Layout(settings.home))])


def test_where_nothing_changed_no_run_is_recorded_but_where_one_is_asked_for(run_indexed, tmp_path):
    before = recorded_runs(tmp_path)

    [settled] = json.loads(run_indexed("index", "--json").out)
    assert recorded_runs(tmp_path) == before
    [recorded] = json.loads(run_indexed("index", "--run", "--json").out)
    assert recorded_runs(tmp_path) == before + 1

    assert settled["run_id"] is None
    assert recorded["run_id"]
    times = {"run_id", "seconds"}
    assert {key: settled[key] for key in settled.keys() - times} == {
        key: recorded[key] for key in recorded.keys() - times
    }


def test_only_the_source_that_changed_gets_a_run(run, tmp_path):
    Path("other").mkdir()
    Path("other/page.md").write_text("# Other\n\nQuite another page about valves.\n")
    run("index", "manual")
    run("index", "other")
    before = recorded_runs(tmp_path)
    Path("other/page.md").write_text("# Other\n\nThe page about valves was written anew.\n")

    summaries = json.loads(run("index", "--json").out)

    assert [(one["source"], one["changed"] + one["added"]) for one in summaries] == [
        ("library/manual", 0),
        ("library/other", 1),
    ]
    assert recorded_runs(tmp_path) == before + 1


def test_neither_dagster_nor_lancedb_is_loaded_to_say_that_nothing_changed(run_indexed, tmp_path):
    say = (
        "import sys; sys.argv[1:] = ['index'];"
        "from docindex_dagster.cli.app import app; app(standalone_mode=False);"
        "print(sorted({'dagster', 'lance', 'lancedb', 'tree_sitter'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", say], check=True, capture_output=True, text=True)

    assert "nothing changed" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"


def test_after_a_run_that_was_killed_at_its_work_the_next_one_is_recorded(run_indexed, tmp_path):
    lock = Path(".docindex/locks/library%2Fmanual.lock")
    lock.write_text("run 42\n42\n2026-01-01T00:00:00\n")  # left over from a dead owner

    assert json.loads(run_indexed("index", "--json").out)[0]["run_id"]
    assert json.loads(run_indexed("index", "--json").out)[0]["run_id"] is None


def test_what_was_begun_for_another_model_is_dropped_by_a_run_that_is_recorded(run_indexed, tmp_path):
    layout = Layout(load_settings(tmp_path).home)
    layout.next.write_bytes(layout.current.read_bytes())

    assert json.loads(run_indexed("index", "--json").out)[0]["run_id"]
    assert not layout.next.exists()


def test_where_nothing_changed_links_that_are_missing_are_written(run_indexed, tmp_path):
    layout = Layout(load_settings(tmp_path).home)
    [links] = layout.links.iterdir()
    links.unlink()

    run_indexed("index")

    assert links.exists()


def test_a_damaged_store_is_noticed_though_nothing_changed(run_indexed, tmp_path):
    layout = Layout(load_settings(tmp_path).home)
    for file in layout.home.glob("stores/tantivy/*/meta.json"):
        file.write_text("{")

    assert run_indexed("index").code == 1


def test_a_missing_folder_fails_its_own_source_only_and_keeps_its_index(run):
    Path("other").mkdir()
    Path("other/page.md").write_text("# Other\n\nQuite another page about valves.\n")
    run("index", "manual")
    run("source", "add", "other")
    Path("manual").rename("moved")

    output = run("index")

    assert output.code == 1
    assert "library/manual" in output.err
    assert "library/other: 1 file," in output.out
    assert "guide.md" in run("search", "pump").out
    states = {row["source"]: row["state"] for row in json.loads(run("status", "--json").out)}
    assert states["library/manual"] == "missing"


def test_a_run_that_cannot_even_begin_fails_in_one_line(run_indexed):
    locks = Path(".docindex/locks")
    for file in locks.iterdir():
        file.unlink()
    locks.rmdir()
    locks.write_text("in the way")

    output = run_indexed("index", "--verify")

    assert output.code == 1
    assert len(output.err.splitlines()[1:]) == 1


def test_a_missing_folder_is_a_line_not_a_stack_trace(run_indexed):
    Path("manual").rename("moved")

    output = run_indexed("index")

    assert output.code == 1
    assert len(output.err.splitlines()[1:]) == 1
    assert "manual" in output.err


def test_a_folder_inside_a_source_stands_for_that_source(run_indexed):
    Path("manual/deep").mkdir()

    assert "library/manual:" in run_indexed("index", "manual/deep").out
    assert len(json.loads(run_indexed("source", "list", "--json").out)) == 1


def test_folders_of_a_folder_are_indexed_by_one_command(run):
    for name in ("one", "two"):
        (Path("raw") / name).mkdir(parents=True)
        (Path("raw") / name / "page.md").write_text(f"# {name}\n\nWords about {name} that stand here.\n")

    assert run("index", "raw/{library}").code == 0
    assert len(json.loads(run("status", "--json").out)) == 2


def test_the_links_of_the_graph_are_written_once_for_all_sources(run, tmp_path):
    for name in ("one", "two"):
        (Path("raw") / name).mkdir(parents=True)
        (Path("raw") / name / "pump.py").write_text(f"def {name}(pump):\n    return pump\n")

    assert run("index", "raw/{library}").code == 0

    layout = Layout(load_settings(tmp_path).home)
    published = read_generation(layout)
    assert published is not None
    assert [file.name for file in layout.links.iterdir()] == [*link_files.names(published)]


def test_the_stores_are_maintained_while_many_sources_are_indexed(run, tmp_path, monkeypatch):
    monkeypatch.setattr(maintenance, "_MAX_VERSIONS", 1)
    for name in ("one", "two", "three"):
        (Path("raw") / name).mkdir(parents=True)
        (Path("raw") / name / "pump.py").write_text(f"def {name}(pump):\n    return pump\n")
    done = []
    maintain = maintenance.maintain

    def noting(layout: Layout) -> list[maintenance.Maintained]:
        done.append(maintain(layout))
        return done[-1]

    monkeypatch.setattr(maintenance, "maintain", noting)

    assert run("index", "raw/{library}").code == 0

    assert [one.rows for [one] in done] == [1, 2, 3]
    assert run("doctor").code == 0


def test_the_index_keeps_itself_out_of_git(run, git, tmp_path):
    git(tmp_path, "init", "-q")
    run("index", "manual")

    assert ".docindex" not in git(tmp_path, "status", "--porcelain")


def test_a_run_says_whom_it_waits_for_and_stops_at_once_when_interrupted(run_indexed, tmp_path):
    command = [sys.executable, "-X", "faulthandler", "-m", "docindex_dagster.cli", "index", "--run"]
    log = tmp_path / "errors.log"
    with exclusive(Path(".docindex/locks/library%2Fmanual.lock"), owner="run 42", on_wait=pytest.fail):
        with log.open("w") as errors:
            process = subprocess.Popen(command, stderr=errors)
        while "waiting" not in log.read_text():
            assert process.poll() is None
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130

    assert log.read_text().splitlines() == [
        "docindex: indexing all sources …",
        "library/manual: waiting for another run of this source (run 42)",
        "error: library/manual: interrupted; what was searchable still is, and the next run continues from here",
    ]


def _interrupted(process: subprocess.Popen[bytes]) -> int:
    """Press Ctrl-C until a process exits, since Python drops exceptions raised in a finalizer; return its exit code."""
    for _ in range(3):
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            return process.wait(timeout=20)
    process.send_signal(signal.SIGABRT)  # the fault handler prints where it hangs
    return process.wait()


def test_a_run_that_was_killed_is_reported_failed_and_the_next_one_starts_at_once(run_indexed, tmp_path):
    command = [sys.executable, "-m", "docindex_dagster.cli", "index", "--run"]
    with exclusive(Path(".docindex/locks/library%2Fmanual.lock"), owner="run 42", on_wait=pytest.fail):
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert "indexing" in process.stderr.readline()
        assert "waiting" in process.stderr.readline()
        process.kill()
        process.wait()
        process.stderr.close()

    Path("manual/new.md").write_text("# New\n\nA page about marmots and their burrows.\n")
    assert run_indexed("index").code == 0

    states = [entry.state for _, entry in journal.runs(Layout(load_settings(tmp_path).home))]
    assert states == [State.SUCCEEDED, State.LOST, State.SUCCEEDED]
    assert "new.md" in run_indexed("search", "marmots").out


def test_a_single_file_is_indexed_alone(run_indexed):
    Path("manual/guide.md").write_text("# Guide\n\nThe windmill lifts the water now.\n")
    Path("manual/pump.py").write_text("def lower_bucket() -> None:\n    print('down the well')\n")

    assert run_indexed("index", "manual/guide.md").code == 0

    assert "guide.md" in run_indexed("search", "windmill", "--mode", "bm25").out
    assert "nothing found" in run_indexed("search", "lower_bucket", "--mode", "bm25").out
    assert run_indexed("index").code == 0
    assert "pump.py" in run_indexed("search", "lower_bucket", "--mode", "bm25").out


def test_a_single_file_that_is_not_to_be_indexed_says_why(run_indexed):
    Path("manual/server.log").write_text("started\n")

    refused = run_indexed("index", "manual/server.log")

    assert refused.code == 1
    assert "always-skipped" in refused.err


def test_a_file_that_is_gone_leaves_the_index_by_its_name(run_indexed):
    Path("manual/pump.py").unlink()

    assert run_indexed("index", "manual/pump.py").code == 0

    assert "no indexed file has the path" in run_indexed("search", "litres", "--mode", "bm25", "--path", "pump.py").err


def test_one_is_singular_where_stages_end(run):
    Path("manual/pump.py").unlink()

    assert "chunks: 1 file\n" in run("index", "manual").err
