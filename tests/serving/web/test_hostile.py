"""Tests that attacker-controlled files, names and commits appear as text: no HTML, no links, nothing hidden."""

import time
from urllib.parse import quote

import pytest

from docindex_dagster.core.errors import QueryError
from docindex_dagster.render.html import highlighting, prose
from docindex_dagster.search import cancellation
from tests.serving.web import project

FILE = f"/file/git/shop/{quote(project.HOSTILE_NAME)}"
ADDRESSES = [
    "/?q=marmot",
    "/?q=marmot&type=commit",
    f"/?q=marmot&at={quote('git/shop/' + project.HOSTILE_NAME)}&from=1&to=3",
    "/?q=" + quote(project.SCRIPT + project.HANDLER),
    "/?q=a&source=" + quote('"><script>'),
    FILE,
    f"{FILE}?from=1&to=3",
    "/file/library/manual/marmots.md",
    "/file/library/manual/marmots.md?as=prose",
    "/file/library/manual/" + quote(project.HANDLER),
    "/log",
    "/log?q=" + quote(project.HANDLER),
    "/log?author=" + quote('"><script>'),
    "/source/git/shop",
    "/ask?q=" + quote("</textarea>" + project.SCRIPT + project.HANDLER + project.BIDI),
    "/ask?source=" + quote('"><script>'),
    f"/ask?at={quote('git/shop/' + project.HOSTILE_NAME)}&from=1&to=3",
    "/problems/" + quote("<script>"),
    "/" + quote("<script>"),
]


@pytest.fixture(params=ADDRESSES)
def answer(client, request):
    return client.get(request.param)


def test_no_element_or_attribute_of_it_is_there(answer):
    from selectolax.lexbor import LexborHTMLParser

    page = LexborHTMLParser(answer.text)
    assert {script.attributes["src"] for script in page.css("script")} <= {"/static/theme.js", "/static/page.js"}
    assert page.css("img, iframe, object, embed, style, base") == []
    for node in page.css("*"):
        for name, value in node.attributes.items():
            assert not name.startswith("on"), (node.tag, name)
            assert name != "style"
            if name in {"href", "src", "action"}:
                assert value.startswith(("/", "#")), value
                assert not value.startswith("//")


def test_no_character_of_it_hides_or_turns_what_follows(answer):
    assert project.BIDI not in answer.text
    assert "\u202d" not in answer.text


def test_such_characters_are_shown_as_marks(client):
    assert "�yp.py" in client.get(FILE).text
    assert "�hidden" in client.get("/file/library/manual/marmots.md?as=prose").text


def test_the_commit_is_text_too(client):
    commits = client.get("/log?q=marmots").text
    address = commits.partition('class="subject" href="')[2].partition('"')[0]
    page = client.get(address).text
    assert "&lt;script&gt;" in page
    assert project.SCRIPT not in page
    assert project.HANDLER not in page
    assert project.BIDI not in page
    assert "�body of it" in page


def test_prose_takes_no_html_and_no_address_of_another_host():
    html = str(prose.render_markdown(project.HOSTILE_PAGE, "library/manual", "marmots.md"))
    assert "<a" not in html
    assert "<img" not in html
    assert "[image: picture]" in html
    assert "click" in html


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        "java&#x0A;script:alert(1)",
        "vbscript:x",
        "data:text/html,x",
        "https://evil.example",
        "//evil.example",
        "\\\\evil.example",
        "/\\evil.example",
        "../../../../login",
        "file:///etc/passwd",
        "mailto:a@b",
        "http://[",
    ],
)
def test_a_link_leads_to_a_file_of_its_source_or_nowhere(address):
    html = str(prose.render_markdown(f"[there]({address})\n\n<{address}>\n", "library/manual", "a/b.md"))
    for part in html.split('href="')[1:]:
        assert part.startswith("/file/library/manual/")


def test_the_sanitiser_alone_is_enough(monkeypatch):
    """Test that no HTML reaches a page even if the renderer lets it through."""
    monkeypatch.setattr(prose, "_settle", lambda *_: None)
    html = str(
        prose.render_markdown(
            "[a](javascript:x) ![p](https://evil.example/p.png) [b](https://evil.example)", "g/x", "a"
        )
    )
    assert "evil.example/p.png" not in html
    assert "href=" not in html


@pytest.mark.parametrize("language", ["python", "html", "markdown", "php", "no such language", None])
def test_code_is_escaped_in_every_language_and_no_character_is_lost(language):
    lines = highlighting.lines_of(project.HOSTILE_PAGE, language, [(0, 3), (10, 200)])
    plain = "\n".join(line.striptags() if line else "" for line in lines)
    assert all("<script" not in line and "<img" not in line for line in lines)
    assert len(lines) == project.HOSTILE_PAGE.count("\n") + 1
    assert "marmot" in plain


HOSTILE_CODE = {
    "html+ng2": "(",
    "autoit": "\t",
    "devicetree": "'a",
    "usd": "--",
    "gnuplot": "a",
    "systemd": "a",
    "dart": "&",
    "matlab": " ",
}


@pytest.mark.parametrize("language", HOSTILE_CODE)
@pytest.mark.parametrize("length", [4_990, 1_990])
def test_code_in_hostile_lexers_does_not_keep_a_page_waiting(language, length):
    what = HOSTILE_CODE[language]
    fence = "```{}\n{}\n```\n\n".format(language, "\n".join([what * (length // len(what))] * 10))

    began = time.process_time()
    prose.render_markdown(fence * 3, "library/manual", "a.md")

    assert time.process_time() - began < 5


def test_code_is_coloured_no_more_once_its_client_has_left():
    with cancellation.cancel_when(lambda: True), pytest.raises(QueryError):
        highlighting.lines_of("x = 1\n", "python")


@pytest.mark.parametrize("language", ["py", "sh", "js", "c++", "yml", "rust"])
def test_languages_that_docindex_knows_are_coloured_under_any_of_their_names(language):
    assert "<span" in "".join(highlighting.lines_of("# x = 1\nreturn '1'\n", language))


def test_a_file_that_would_take_long_to_render_is_shown_by_its_lines(client, monkeypatch):
    address = "/file/library/manual/marmots.md?as=prose"
    assert 'class="prose' in client.get(address).text
    monkeypatch.setattr(prose, "LONGEST", 10)
    assert 'class="prose' not in client.get(address).text
