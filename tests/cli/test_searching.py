"""`docindex search`, `show` and `why`: arguments and output."""

import json
from pathlib import Path

import pytest


def test_results_are_readable_without_a_terminal(run_indexed):
    shown = run_indexed("search", "prime_pump", "--mode", "bm25", "--language", "python").out

    assert " 1 manual/pump.py:1  function prime_pump  1-3  library/manual\n" in shown
    assert "bm25 #1" in shown


def test_show_prints_the_chunk_at_a_line_and_why_explains_a_file(run_indexed):
    assert "Fill the pump" in run_indexed("show", "pump.py:2").out
    assert "1 chunk is searchable" in run_indexed("why", "manual/pump.py").out
    Path("manual/photo.png").write_bytes(b"\x89PNG\0\0")
    answer = run_indexed("why", "manual/photo.png").out
    assert "binary" in answer
    assert "no chunks are searchable" in answer


@pytest.mark.parametrize(
    "query", ["foo::bar(", '"unbalanced', "x:y AND", "", "a" * 10_000, "🙂", "--", "*", "path:/etc AND -x"]
)
def test_any_query_gives_an_answer_or_a_one_line_error(run_indexed, query):
    output = run_indexed("search", "--", query)

    assert output.code in {0, 1}
    assert "Traceback" not in output.err
    assert len(output.err.splitlines()) <= 1


def test_unknown_filter_values_are_explained(run_indexed):
    assert "languages: markdown, python" in run_indexed("search", "pump", "--language", "klingon").err
    assert run_indexed("search", "pump", "--type", "poem").code == 2
    assert "pump.py" in run_indexed("search", "pump", "--language", "Python").out


def test_what_a_file_holds_cannot_steer_the_terminal(run):
    Path("manual/evil.md").write_text("# Pump\n\nred pump \x1b[31m and a title \x1b]0;owned\x07 for the terminal\n")
    run("index", "manual")

    assert "\x1b" not in run("search", "red pump title", "--mode", "bm25").out
    assert "\x1b" not in run("show", "evil.md").out


@pytest.mark.parametrize("place", ["pump.py:2", "manual/pump.py:2", "./manual/../manual/pump.py:2", "pump.py:1-3"])
def test_show_takes_a_place_as_it_lies_on_disk_or_as_a_search_prints_it(run_indexed, place):
    assert "Fill the pump" in run_indexed("show", place).out


def test_within_a_source_what_is_no_path_is_looked_up_as_it_is(run_indexed, monkeypatch):
    [hit] = json.loads(run_indexed("search", "fill pump", "--language", "python", "-k", "1", "--json").out)
    monkeypatch.setenv("DOCINDEX_ROOT", str(Path.cwd()))
    monkeypatch.chdir("manual")

    assert "Fill the pump" in run_indexed("show", hit["chunk_id"]).out
    assert "no indexed chunk is named '0123abc'" in run_indexed("show", "0123abc").err


def test_why_takes_a_path_as_a_search_prints_it_and_normalises_others(run_indexed):
    for path in ("pump.py", "manual/pump.py", "manual/../manual/pump.py"):
        assert "1 chunk is searchable" in run_indexed("why", path).out
    assert "expected a file in it" in run_indexed("why", "manual").err


def test_why_takes_a_path_below_the_one_source_that_has_it(run):
    Path("other").mkdir()
    Path("other/guide.md").write_text("# Other\n\nQuite another page about valves.\n")
    Path("guide.md").write_text("in no source\n")
    run("index", "manual", "other")
    Path("manual/pump.py").unlink()

    assert "1 chunk is searchable" in run("why", "pump.py").out
    several = run("why", "guide.md")
    assert several.code == 1
    assert "guide.md is ambiguous, since library/manual and library/other have it: use " in several.err
    assert "build/output.js is not in any source" in run("why", "build/output.js").err


def test_show_names_the_last_line_that_there_is(run_indexed):
    refused = run_indexed("show", "pump.py:9999999")

    assert refused.code == 1
    assert "no indexed chunk of pump.py is at line 9999999: the last indexed line is 3" in refused.err
