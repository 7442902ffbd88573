"""`docindex similar`: passages that resemble an indexed location."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import index_in

OPEN = """\
def open_{0}(path):
    \"\"\"Open a {0} and read its header.\"\"\"
    with path.open("rb") as file:
        return file.read(16)
"""


def write(folder: Path) -> None:
    manual = folder / "manual"
    (manual / "archive.py").write_text(OPEN.format("archive"))
    (manual / "image.py").write_text(OPEN.format("image"))
    (manual / "weather.md").write_text("# Weather\n\nRain comes from the west, and wind with it.\n")
    (manual / "headers.md").write_text("# Headers\n\nAn archive is opened, and its header of 16 bytes is read.\n")


@pytest.fixture(scope="module")
def indexed_once(tmp_path_factory):
    return index_in(tmp_path_factory.mktemp("indexed"), write=write)


@pytest.fixture
def indexed(run_indexed):
    return run_indexed


def places(answer) -> list[str]:
    return [f"{hit['path']}:{hit['line']}" for hit in json.loads(answer.out)]


def test_the_duplicate_comes_first_and_the_place_itself_never(indexed):
    found = places(indexed("similar", "manual/archive.py:2", "--json"))

    assert found[0] == "image.py:1"
    assert found[1] == "headers.md:1"
    assert not [place for place in found if place.startswith("archive.py")]


def test_scores_are_cosines_best_first(indexed):
    scores = [hit["score"] for hit in json.loads(indexed("similar", "manual/archive.py:2", "--json").out)]

    assert scores == sorted(scores, reverse=True)
    assert all(-1 <= score <= 1 for score in scores)
    assert scores[0] > 0.8


def test_filters_are_of_what_is_found(indexed):
    assert places(indexed("similar", "archive.py", "--type", "doc", "-k", "1", "--json")) == ["headers.md:1"]


def test_a_terminal_shows_places_as_a_search_does(indexed):
    assert indexed("similar", "archive.py", "-k", "1").out.startswith(" 1 manual/image.py:1  ")


def test_other_places_of_the_same_file_count_if_asked_for(indexed):
    sections = (f"# Part {at}\n\n" + "An archive is opened, and its header is read. " * 60 for at in range(3))
    Path("manual/archive.md").write_text("\n\n".join(sections))
    indexed("index")

    without = places(indexed("similar", "archive.md:1", "-k", "20", "--json"))
    with_them = places(indexed("similar", "archive.md:1", "-k", "20", "--same-file", "--json"))

    assert not [place for place in without if place.startswith("archive.md")]
    assert {"archive.md:5", "archive.md:9"} <= set(with_them)


def test_a_place_that_several_sources_have_is_asked_back(indexed):
    Path("other").mkdir()
    Path("other/archive.py").write_text(OPEN.format("archive"))
    assert indexed("index", "other").code == 0

    answer = indexed("similar", "archive.py:1")

    assert answer.code == 1
    assert "matches several files. Specify its source: library/manual archive.py, library/other archive.py" in " ".join(
        answer.err.split()
    )
    assert places(indexed("similar", "other/archive.py:1", "-k", "1", "--json")) == ["archive.py:1"]


def test_what_is_not_indexed_is_reported(indexed):
    answer = indexed("similar", "nowhere.py:3")

    assert answer.code == 1
    assert "no indexed chunk is named 'nowhere.py:3'" in answer.err
