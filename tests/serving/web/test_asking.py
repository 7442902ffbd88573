"""Tests of the question page: its address, what it says about the model, and the feedback it records."""

import json

import pytest

from docindex_dagster.operations.fields import LONGEST_QUERY
from tests.serving.web import project
from tests.serving.web.conftest import serving
from tests.serving.web.test_pages import texts

CITED = {"number": 1, "state": "doubtful", "source": "git/shop", "path": "tank.py", "start_line": 16, "end_line": 18}
SENT = {"verdict": "good", "question": "how?", "answer": "`pump` [1]", "citations": [CITED], "comment": "yes"}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """Return a separate project, because tests write feedback to it."""
    made = project.make(tmp_path_factory.mktemp("asking"))
    project.index_all(made)
    return made


@pytest.fixture
def asking(root):
    with serving(root) as client:
        yield client


def records(root) -> list[dict[str, object]]:
    return [json.loads(line) for line in (root / ".docindex" / "feedback.jsonl").read_text().splitlines()]


def test_the_address_fills_question_and_filters(read):
    page = read("/ask?q=how+is+it+done&source=git/shop&type=code&path=src/**")
    assert page.css_first("#question").text().strip() == "how is it done"
    assert page.css_first("#by-source option[selected]").attributes["value"] == "git/shop"
    assert page.css_first("#by-type option[selected]").attributes["value"] == "code"
    assert page.css_first("#by-path").attributes["value"] == "src/**"
    assert page.css_first("#by-mode") is None
    assert page.css_first("#clear").attributes["href"] == "/ask?q=how%20is%20it%20done"


def test_it_is_one_of_the_pages_and_a_search_leads_to_it(read):
    assert read("/sources").css_first(".pages a").attributes["href"] == "/ask"
    link = read("/?q=the+pump&source=git/shop&mode=bm25").css_first("a[data-ask]")
    assert link.attributes["href"] == "/ask?q=the%20pump&source=git%2Fshop"
    assert read("/").css_first("a[data-ask]") is None


def test_without_a_model_it_says_how_to_set_one(read):
    page = read("/ask")
    assert "[llm]" in page.css_first("#no-model pre").text()
    assert page.css_first("#model") is None


def test_with_a_model_it_names_it(asking, root):
    settings = root / "docindex.toml"
    before = settings.read_text()
    settings.write_text(f'{before}\n[llm]\nprovider = "openai"\nmodel = "<b>small"\n')
    try:
        page = asking.get("/ask").text
    finally:
        settings.write_text(before)
    assert "openai/&lt;b&gt;small" in page
    assert 'id="no-model"' not in page


def test_a_file_stands_beside_it_and_one_that_is_not_there_does_no_harm(read):
    assert texts(read("/ask?at=git/shop/tank.py&from=16&to=18"), ".marked")[0].endswith("def pump(litres):")
    assert "unknown-file" in read("/ask?at=git/shop/nowhere.py").css_first("#pane").html


def test_a_verdict_is_noted_with_all_that_was_judged(asking, root):
    assert asking.post("/ask/feedback", json={**SENT, "model": "m", "generation": 3}).status_code == 201
    record = records(root)[-1]
    assert record.pop("time")
    assert record == {**SENT, "model": "m", "generation": 3}


@pytest.mark.parametrize(
    "wrong",
    [
        {"verdict": "great"},
        {"question": "x" * (LONGEST_QUERY + 1)},
        {"answer": "x" * 200_001},
        {"comment": "x" * 4001},
        {"citations": [{**CITED, "state": "right"}]},
        {"citations": [CITED] * 1001},
        {"more": 1},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_what_is_none_or_too_much_is_refused(asking, root, wrong):
    (root / ".docindex" / "feedback.jsonl").unlink(missing_ok=True)
    assert asking.post("/ask/feedback", json={**SENT, **wrong}).status_code == 422
    assert not (root / ".docindex" / "feedback.jsonl").exists()


def test_a_page_of_another_site_notes_nothing(asking):
    assert asking.post("/ask/feedback", json=SENT, headers={"Origin": "https://evil.example"}).status_code == 403


def test_who_has_no_token_notes_nothing(root):
    with serving(root, "a-token-that-is-long-enough-0123456789") as client:
        assert client.post("/ask/feedback", json=SENT).status_code == 401
