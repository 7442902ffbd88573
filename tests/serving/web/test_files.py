"""Tests of the file page: its lines, highlighted lines, outline and surroundings."""

from docindex_dagster.serving.web import files
from tests.serving.web import project


def texts(page, selector: str) -> list[str]:
    return [" ".join(node.text().split()) for node in page.css(selector)]


def shown(page) -> str:
    for number in page.css(".code .n"):
        number.decompose()
    text: str = page.css_first(".code").text()
    return text


def test_the_text_is_that_of_the_file(read):
    assert shown(read("/file/git/shop/tank.py")) == project.TANK


def test_the_lines_that_are_asked_for_are_marked(read):
    page = read("/file/git/shop/tank.py?from=16&to=18")
    assert [line.attributes["id"] for line in page.css(".marked")] == ["L16", "L17", "L18"]
    assert page.css_first("#L16 .n").attributes["href"] == "/file/git/shop/tank.py?from=16#L16"


def test_lines_behind_the_end_are_cut_off_and_a_begin_there_is_a_mistake(client, read):
    last = project.TANK.count("\n")
    marked = read(f"/file/git/shop/tank.py?from={last - 2}&to=999").css(".marked")
    assert [line.attributes["id"] for line in marked] == [f"L{last - 2}", f"L{last - 1}", f"L{last}"]
    assert client.get("/file/git/shop/tank.py?from=999").status_code == 422


def test_a_symbol_marks_its_lines(read):
    page = read("/file/git/shop/tank.py?symbol=Tank.drain")
    assert [line.attributes["id"] for line in page.css(".marked")] == ["L11", "L12", "L13"]


def test_the_outline_has_each_symbol_at_its_depth(read):
    page = read("/file/git/shop/tank.py")
    assert texts(page, ".outline li") == [
        "class Tank",
        "method fill",
        "method drain",
        "function pump",
        "function check",
    ]
    assert page.css(".outline li")[1].attributes["class"] == "depth-1"


def test_callers_and_callees_of_the_marked_symbol_lead_to_their_places(read):
    page = read("/file/git/shop/tank.py?from=16&to=18")
    assert page.css_first(".relations .of").text() == "pump"
    callers, callees = page.css(".two section")
    assert set(texts(callers, "li a")) == {"test_pressure", "Tank.fill", "Tank.drain"}
    assert "tank.py:9" in texts(callers, ".place")
    assert texts(callees, "li a") == ["check"]
    assert callees.css_first("a").attributes["href"] == "/file/git/shop/tank.py?symbol=check"


def test_a_picture_shows_who_calls_it_and_what_it_calls(read):
    picture = read("/file/git/shop/tank.py?symbol=pump").css_first(".neighbourhood svg")
    assert picture.attributes["aria-label"] == "3 callers of pump on the left, 1 callees on the right"
    assert {box.attributes["aria-label"] for box in picture.css("a")} == {
        "Tank.fill",
        "Tank.drain",
        "test_pressure",
        "check",
    }


def test_what_resembles_the_marked_lines_is_listed(read):
    page = read("/file/git/shop/tank.py?from=16&to=18")
    assert page.css_first(".alike li a") is not None


def test_markdown_is_shown_as_prose_where_it_is_asked_for(read):
    page = read("/file/library/manual/pumps.md?as=prose")
    prose = page.css_first(".prose")
    assert texts(prose, "h2") == ["Pumps"]  # the first heading of the page is the file name
    assert texts(prose, "td") == ["valve", "slowly"]
    assert prose.css_first("pre .k-nf").text() == "close"
    assert prose.css_first("#L5").text() == "Stopping"


def test_prose_links_within_its_source_alone(read):
    prose = read("/file/library/manual/pumps.md?as=prose").css_first(".prose")
    assert [link.attributes["href"] for link in prose.css("a")] == ["/file/library/manual/more/list.md"]
    assert "the maker (https://maker.example/x)" in prose.text()


def test_a_long_file_is_shown_in_parts(read, monkeypatch):
    monkeypatch.setattr(files, "_MOST_LINES", 10)
    monkeypatch.setattr(files, "_BEFORE", 2)
    page = read("/file/git/shop/tank.py?from=16&to=18")
    numbers = [line.attributes["id"] for line in page.css(".code .line")]
    assert (numbers[0], len(numbers)) == ("L14", 10)
    firsts = [link.attributes["href"].rpartition("#")[2] for link in page.css(".parts a")]
    assert firsts == ["L1", "L11", "L21"]


def test_a_file_that_is_not_indexed_is_a_mistake_with_the_same_name_as_in_the_api(client):
    answer = client.get("/file/git/shop/gone.py")
    assert answer.status_code == 404
    assert "/problems/unknown-file" in answer.text


def test_a_file_that_changed_since_says_so(indexed, read):
    manual = indexed / "manual" / "pumps.md"
    before = manual.read_bytes()
    try:
        manual.write_text("# Other\n")
        assert "changed since it was indexed" in read("/file/library/manual/pumps.md").css_first(".badges").text()
        assert "changed since it was indexed" in read("/?q=how+a+pump+is+started").css_first(".results").text()
    finally:
        manual.write_bytes(before)
