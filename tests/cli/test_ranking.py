"""Ranking as users see it: questions about documents, settings and code, in one source and in several."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import index_in

FAQ = """# Questions and answers

The pump is started, stopped, run, cleaned and kept by whoever reads these questions about the pump.

## What the pump needs

The pump needs power, water, a pump house, and somebody who starts the pump. {filling}

## Running two pumps

Give each of them a valve of its own. {filling}

## Cleaning

Clean the pump once a year. {filling}
"""
FILLING = "Water flows through the pipe into the tank and from there on through the filter to the garden. " * 40


def found(output) -> list[dict[str, Any]]:
    assert output.code == 0, output.err
    hits: list[dict[str, Any]] = json.loads(output.out)
    return hits


def of_signal(hit: dict[str, Any], name: str) -> float:
    return math.fsum(signal["contribution"] for signal in hit["signals"] if signal["name"] == name)


def test_a_setting_does_not_take_the_place_of_documentation_that_answers(run):
    Path("manual/.github/workflows").mkdir(parents=True)
    Path("manual/.github/workflows/deploy.yml").write_text("name: deploy\njobs:\n  deploy: the pump is deployed\n")
    Path("manual/deploy.py").write_text("def deploy():\n    return 'the pump is deployed'\n")
    run("index", "manual")

    hits = found(run("search", "how do I deploy the pump", "--json"))

    settings = next(hit for hit in hits if hit["source_type"] == "config")
    assert of_signal(settings, "document") <= 0
    assert of_signal(next(hit for hit in hits if hit["path"] == "guide.md"), "document") > 0


def test_a_document_steps_forward_by_how_much_of_the_question_it_says(run):
    Path("manual/valves.md").write_text(
        "# Valves\n\nA valve returns water to the tank. A valve opens. Mind the valve.\n"
    )
    Path("manual/tuples.md").write_text("# Results\n\nWhere a valve returns a tuple, its items are litres and bars.\n")
    run("index", "manual")

    hits = {hit["path"]: hit for hit in found(run("search", "what happens when a valve returns a tuple", "--json"))}

    shares = {path: of_signal(hits[path], "document") / hits[path]["score"] for path in ("valves.md", "tuples.md")}
    assert shares["tuples.md"] > 1.5 * shares["valves.md"]


def test_an_entry_whose_heading_is_the_question_comes_first_though_its_page_was_shown_before(run):
    Path("manual/faq.md").write_text(FAQ.format(filling=FILLING))
    run("index", "manual")

    first = found(run("search", "how do I run two pumps", "--json"))[0]

    assert first["heading_path"][-1] == "Running two pumps"
    assert of_signal(first, "heading") > 0


def write(folder: Path) -> None:
    for name, times in (("brine", 1), ("manual", 3)):
        (folder / name).mkdir(exist_ok=True)
        text = f"# Priming in {name}\n\n" + "A pump is primed by a valve. " * times + "Water follows.\n"
        (folder / name / "priming.md").write_text(text)


@pytest.fixture(scope="module")
def indexed_once(tmp_path_factory):
    return index_in(tmp_path_factory.mktemp("indexed"), "brine", write=write)


@pytest.fixture
def two_sources(run_indexed):
    """The libraries `brine` and `manual`, which both describe pumps, `manual` more often."""
    return run_indexed


@pytest.mark.parametrize("mode", ["hybrid", "vector", "bm25"])
@pytest.mark.parametrize("query", ["in brine, how is a pump primed", "brine pump primed", "priming a pump with Brine"])
def test_a_query_that_names_a_source_is_answered_from_there(two_sources, query, mode):
    first = found(two_sources("search", query, "--mode", mode, "--json"))[0]

    assert first["source"] == "library/brine"
    assert of_signal(first, "source") > 0


@pytest.mark.parametrize("query", ["how is a pump primed", "the difference between brine and manual", "brine"])
def test_a_query_that_names_no_source_or_several_or_nothing_else_chooses_none(two_sources, query):
    assert not any(of_signal(hit, "source") for hit in found(two_sources("search", query, "--json")))


def test_a_name_that_is_a_word_of_the_other_sources_chooses_none(two_sources):
    Path("pump").mkdir()
    Path("pump/notes.md").write_text("# Notes\n\nWhat is left to do: paint the pump house.\n")
    two_sources("source", "add", "pump")
    two_sources("index")

    assert not any(of_signal(hit, "source") for hit in found(two_sources("search", "how is a pump primed", "--json")))
