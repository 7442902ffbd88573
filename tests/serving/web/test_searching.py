"""Tests of the server-rendered search page, without JavaScript."""

import json
import shutil
from urllib.parse import quote

import pytest
from selectolax.lexbor import LexborHTMLParser

from docindex_dagster.serving.web import search
from tests.serving.web.conftest import serving


def texts(page, selector: str) -> list[str]:
    return [" ".join(node.text().split()) for node in page.css(selector)]


def test_without_a_query_it_says_what_is_indexed_and_by_which_languages(read):
    page = read("/")
    assert texts(page, ".card h3") == ["git/shop", "library/manual"]
    assert any(text.startswith("python 100 %") for text in texts(page, "figcaption"))
    assert page.css_first("svg rect.shade-0") is not None


def test_results_come_with_place_symbol_marked_words_and_reasons(read):
    page = read("/?q=move+water+between+well+and+tank")
    first = page.css_first(".hit")
    assert " ".join(first.css_first("h2").text().split()).startswith("tank.py:")
    assert "water" in [mark.text() for mark in first.css(".snippet mark")]
    assert first.css_first(".snippet .k-k, .snippet .k-sd") is not None
    assert {"bm25", "vector"} <= {row.text() for row in first.css(".why tbody th")}
    assert first.css_first("a.open").attributes["href"].startswith("/file/git/shop/tank.py?from=")


def test_the_marks_are_those_of_the_answer_whatever_the_lines_end_with(read):
    page = read("/?q=carriage&language=python")
    assert [mark.text() for mark in page.css("mark")][:1] == ["carriage"]
    assert "␍" not in page.body.text()


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("source=library/manual", {"library/manual"}),
        ("language=python", {"git/shop"}),
        ("type=doc", {"library/manual"}),
        ("kind=function", {"git/shop"}),
        ("path=tests/**", {"git/shop"}),
    ],
)
def test_filters_narrow_the_results_and_stay_chosen(read, asked, found):
    page = read(f"/?q=pump&{asked}")
    places = [link.attributes["href"].split("/")[2:4] for link in page.css(".hit a.open")]
    assert {"/".join(place) for place in places} == found
    name, _, value = asked.partition("=")
    chosen = page.css_first(f"#by-{name} option[selected]") or page.css_first(f"#by-{name}")
    assert chosen.attributes["value"] == value
    assert "hidden" not in page.css_first("#clear").attributes


@pytest.fixture
def collecting(indexed, tmp_path):
    """Yield a client of a server whose project is a copy that collects questions."""
    root = shutil.copytree(indexed, tmp_path / "project", symlinks=True)
    with (root / "docindex.toml").open("a") as settings:
        settings.write("\n[evaluation]\ncollect = true\n")
    with serving(root) as client:
        yield client


def pressed(client, address: str) -> list[str]:
    page = LexborHTMLParser(client.get(address).text)
    return [str(button.attributes["aria-pressed"]) for button in page.css(".hit button[data-answers]")]


def test_where_questions_are_collected_each_result_can_be_called_the_answer(collecting):
    address = "/?q=" + quote('it\'s <b>"water"</b> \u200d from the well')
    page = LexborHTMLParser(collecting.get(address).text)
    question = json.loads(str(page.css_first(".hits").attributes["data-question"]))
    button = page.css_first(".hit button[data-answers]")
    sent = {"question": question, "place": button.attributes["data-answers"], "origin": "page"}

    assert question == 'it\'s <b>"water"</b> \u200d from the well'
    assert button.attributes["aria-label"].startswith(button.text())
    assert set(pressed(collecting, address)) == {"false"}
    assert collecting.post("/api/v1/questions", json=sent).json()["is_new"]
    assert pressed(collecting, address)[0] == "true"
    assert set(pressed(collecting, address)[1:]) == {"false"}
    assert set(pressed(collecting, "/?q=water")) == {"false"}


def test_what_no_evaluation_asks_cannot_be_called_an_answer(collecting):
    assert pressed(collecting, "/?q=tank&type=commit") == []
    assert pressed(collecting, "/?q=water&mode=literal") == []
    assert "data-question" not in collecting.get("/?q=water&mode=literal").text


def test_where_questions_are_not_collected_nothing_is_offered(read):
    page = read("/?q=water")
    assert page.css(".hit")
    assert page.css_first("[data-answers], [data-question]") is None


def test_a_word_that_is_nowhere_gives_a_weak_answer_that_says_so(read):
    page = read("/?q=zeppelin+harmonium")
    warnings = " ".join(texts(page, ".warning"))
    assert "Weak results" in warnings
    assert '"zeppelin" and "harmonium" do not occur' in warnings


def test_nothing_found_says_what_to_try(read):
    page = read("/?q=zeppelin&mode=literal")
    assert page.css_first(".empty h2").text() == "No results"


@pytest.mark.parametrize("asked", ["mode=regex&q=(", "q=pump&path=nowhere/**", "q=pump&source=git/nobody"])
def test_what_cannot_be_answered_is_explained_in_the_place_of_the_results(read, asked):
    assert read(f"/?{asked}").css_first(".trouble p").text()


def test_more_results_go_on_behind_the_first(read, monkeypatch):
    monkeypatch.setattr(search, "_RESULTS", 1)
    first = read("/?q=pump")
    second = read(first.css_first("a[data-more]").attributes["href"])
    places = [page.css_first(".hit a.open").attributes["href"] for page in (first, second)]
    assert places[0] != places[1]


def test_the_results_alone_are_a_part_without_a_page_around(client):
    part = client.get("/part/results?q=pump").text
    assert "<html" not in part
    assert 'class="hit"' in part


def test_a_file_beside_the_results_is_in_the_address(read):
    page = read("/?q=pump&at=git/shop/tank.py&from=16&to=18")
    assert [line.css_first(".n").attributes["data-n"] for line in page.css("#pane .marked")] == ["16", "17", "18"]
    assert page.css_first(".results .hit") is not None


def test_a_file_that_is_not_there_hides_no_results(read):
    page = read("/?q=pump&at=git/shop/gone.py")
    assert page.css_first("#pane .trouble") is not None
    assert page.css_first(".results .hit") is not None


def test_a_project_without_an_index_says_what_to_do(tmp_path):
    (tmp_path / "docindex.toml").touch()
    with serving(tmp_path) as client:
        assert "No sources yet" in client.get("/").text
        (tmp_path / "notes").mkdir()
        (tmp_path / "docindex.toml").write_text('[[source]]\nkind = "library"\npath = "notes"\n')
        assert "Nothing is indexed yet" in client.get("/").text
        assert "No readable index" in client.get("/?q=pump").text
        for address in ("/sources", "/jobs", "/log", "/source/library/notes"):
            assert client.get(address).status_code == 200, address


def test_a_query_of_many_characters_is_refused_as_a_page(client):
    answer = client.get(f"/?q={quote('a' * 20_001)}")
    assert answer.status_code == 422
    assert "The request is not valid" in answer.text
