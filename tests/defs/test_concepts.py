"""LLM concepts in a Dagster run: metadata, checks and logs."""

import dagster as dg
import pytest

from tests.defs.conftest import CONFIG, KEY
from tests.llm.server import KEY as SECRET
from tests.llm.server import LlmServer, serving


@pytest.fixture
def llm():
    with serving() as server:
        server.write = lambda _: '[{"subject": "Sums", "predicate": "uses", "object": "Values"}]'
        yield server


@pytest.fixture
def conceptual(project, llm: LlmServer, monkeypatch):
    """A project whose concepts an LLM extracts."""
    monkeypatch.setenv("DOCINDEX_LLM__API_KEY", SECRET)
    of_llm = f'[llm]\nprovider = "openai"\nmodel = "small-1"\nbase_url = "{llm.url}"\nretries = 0\n'
    (project.root / "docindex.toml").write_text(f'{CONFIG}{of_llm}[graph]\nconcepts = "llm"\n')
    return project


def check(result: dg.ExecuteInProcessResult) -> dg.AssetCheckEvaluation:
    return next(found for found in result.get_asset_check_evaluations() if found.check_name == "graph_is_complete")


def test_the_graph_is_complete_and_a_second_run_asks_nothing(conceptual, llm):
    assert check(conceptual.index()).passed
    asked = len(llm.asked)
    assert asked > 0

    assert check(conceptual.index()).passed
    assert len(llm.asked) == asked


@pytest.mark.parametrize(
    ("how", "why"), [({"status": 500}, "answered 500"), ({"write": lambda _: "nonsense"}, "unusable answer")]
)
def test_a_failing_llm_is_a_warning(conceptual, llm, how, why):
    for name, value in how.items():
        setattr(llm, name, value)
    result = conceptual.index()

    assert result.success
    assert not check(result).passed
    assert check(result).severity == dg.AssetCheckSeverity.WARN
    assert why in check(result).metadata["reason"].value
    made = {event.asset_key.path[-1]: event.materialization for event in result.get_asset_materialization_events()}
    assert why in made["knowledge_graph"].metadata["warnings"].value
    assert conceptual.search("signature") == ["guide.md"]


def test_a_run_over_the_same_files_tells_again_what_is_missing(conceptual, llm):
    llm.status = 500
    conceptual.index()
    assert not check(conceptual.index()).passed

    llm.status = 200
    assert check(conceptual.index()).passed


def test_a_dead_llm_does_not_make_the_sensors_ask_for_ever(conceptual, llm, daemon):
    llm.status = 503
    assert set(daemon.settle()) == {KEY}
    asked = len(llm.asked)

    assert daemon.asks_for() == []
    assert len(llm.asked) == asked
