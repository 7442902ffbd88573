"""Summaries in a Dagster run: metadata, checks, logs and display."""

import json

import dagster as dg
import pytest

from docindex_dagster.cli import main
from tests.defs.conftest import CONFIG, KEY
from tests.llm.server import KEY as SECRET
from tests.llm.server import LlmServer, serving

ABOUT = "Aggregates monetary amounts."


@pytest.fixture
def llm():
    with serving() as server:
        server.write = lambda _: ABOUT
        yield server


@pytest.fixture
def summarised(project, llm: LlmServer, monkeypatch):
    """A project with an LLM."""
    monkeypatch.setenv("DOCINDEX_LLM__API_KEY", SECRET)
    of_llm = f'[llm]\nprovider = "openai"\nmodel = "small-1"\nbase_url = "{llm.url}"\nretries = 0\n'
    (project.root / "docindex.toml").write_text(f"{CONFIG}{of_llm}[summaries]\nenabled = true\nmin_chars = 100\n")
    return project


def numbers(result: dg.ExecuteInProcessResult) -> dict[str, object]:
    (made,) = result.asset_materializations_for_node("chunks")
    names = ("summarised", "summaries_reused", "summaries_failed", "summaries_left", "summary_input_tokens")
    return {name: made.metadata[name].value for name in names if name in made.metadata}


def check(result: dg.ExecuteInProcessResult) -> dg.AssetCheckEvaluation:
    evaluations = result.get_asset_check_evaluations()
    return next(found for found in evaluations if found.check_name == "summaries_are_written")


def test_the_metadata_tell_what_was_written_and_what_it_took(summarised):
    assert numbers(summarised.index()) == {
        "summarised": 2,
        "summaries_reused": 0,
        "summaries_failed": 0,
        "summaries_left": 0,
        "summary_input_tokens": 200,
    }
    assert numbers(summarised.index()) == {
        "summarised": 0,
        "summaries_reused": 2,
        "summaries_failed": 0,
        "summaries_left": 0,
        "summary_input_tokens": 0,
    }


def test_where_they_are_off_nothing_is_reported_of_them(project):
    result = project.index()

    assert numbers(result) == {}
    assert check(result).passed


def test_a_failing_llm_is_a_warning(summarised, llm):
    llm.status = 401
    result = summarised.index()

    assert result.success
    assert not check(result).passed
    assert check(result).severity == dg.AssetCheckSeverity.WARN
    assert "rejected the key" in check(result).metadata["reason"].value
    assert numbers(result)["summaries_failed"] == 2
    assert summarised.search("signature") == ["guide.md"]


def test_a_dead_llm_does_not_make_the_sensors_ask_for_ever(summarised, llm, daemon):
    llm.status = 503
    assert set(daemon.settle()) == {KEY}
    asked = len(llm.asked)

    assert daemon.asks_for() == []
    assert len(llm.asked) == asked

    llm.status = 200
    assert numbers(summarised.index())["summarised"] == 2  # as the nightly run does
    assert daemon.settle() == []


def test_an_edit_of_their_settings_is_noticed(summarised, daemon):
    daemon.settle()
    config = summarised.root / "docindex.toml"
    config.write_text(config.read_text().replace("small-1", "small-2"))

    assert daemon.settle() == [KEY]
    assert daemon.settle() == []


def test_no_event_and_no_file_holds_the_key(summarised, llm):
    summarised.index()
    llm.status = 403
    (summarised.notes / "sums.py").write_text("def product(values):\n" + "    values = values * 2\n" * 10)
    result = summarised.index()

    events = [str(event) for event in summarised.instance.all_logs(result.run_id)]
    assert len(events) > 10
    assert not [event for event in events if SECRET in event]
    files = [file for file in summarised.root.rglob("*") if file.is_file()]
    assert not [file.name for file in files if SECRET.encode() in file.read_bytes()]


def test_removal_of_a_source_removes_its_summaries(summarised):
    from docindex_dagster.definitions import build_definitions
    from docindex_dagster.defs.jobs import removal_config

    summarised.index()
    assert summarised.layout.summaries(KEY).exists()
    job = build_definitions(summarised.root, {}).resolve_job_def("remove_source")
    assert job.execute_in_process(instance=summarised.instance, run_config=removal_config(KEY)).success

    assert not summarised.layout.summaries(KEY).exists()


@pytest.fixture
def shown(summarised, monkeypatch, capfd):
    """Return the output of a command."""
    summarised.index()
    monkeypatch.chdir(summarised.root)

    def run(*arguments: str) -> str:
        monkeypatch.setattr("sys.argv", ["docindex", *arguments])
        capfd.readouterr()
        with pytest.raises(SystemExit):
            main()
        return str(capfd.readouterr().out)

    return run


def test_a_search_and_show_print_them(shown):
    assert f"   {ABOUT}\n" in shown("search", "monetary amounts", "--mode", "bm25")
    assert f"{ABOUT}\n" in shown("show", "sums.py:5")
    assert json.loads(shown("search", "monetary", "--json"))[0]["summary"] == ABOUT
    assert json.loads(shown("show", "sums.py:5", "--json"))[0]["summary"] == ABOUT


def test_agents_see_them_as_such(summarised):
    from docindex_dagster.core.settings import load_settings
    from docindex_dagster.search.live_index import Live
    from docindex_dagster.serving.tools import Tools

    summarised.index()
    tools = Tools(Live(load_settings(summarised.root)), lambda _: None)

    assert f"   summary: {ABOUT}\n" in tools.search(query="monetary amounts", mode="bm25")
    assert f"\nsummary: {ABOUT}\n" in tools.show(reference="sums.py:5")
