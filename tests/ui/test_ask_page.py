"""The Ask view of `docindex serve`, with a scripted model and a project partly written by attackers."""

import json
import os
import re
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from docindex_dagster.llm.chat import Delta, ToolCall, Usage
from tests.llm.chats import MODEL, OPENAI, ChatServer, Reply
from tests.llm.chats import serving as chatting
from tests.llm.server import KEY
from tests.serving.web import project
from tests.ui import pictures
from tests.ui.conftest import ROOT
from tests.ui.served import NARROW, Served, browsing, expect_no_grave_barrier, serving, tab_of

pytestmark = pytest.mark.ui

QUESTION = "How does pump move water between the well and a tank?"
ADDRESS = "/ask?q=How+does+pump+move+water+between+the+well+and+a+tank%3F"
HOSTILE = f"""\
# Done {project.SCRIPT}

![picture](https://evil.example/p.png) [click](javascript:alert(1)) <https://evil.example/auto> {project.HANDLER}

[out][1] and {project.BIDI}hidden

<iframe src="https://evil.example"></iframe>

```html
{project.SCRIPT}
```

[1]: https://evil.example/reference
"""


@dataclass
class Asked:
    """The project, its server, the scripted model, and the passage numbers by file name."""

    root: Path
    served: Served
    model: ChatServer
    numbers: dict[str, int]

    def script(self, *texts: str, **how: Any) -> None:
        """Script the model's answers, one per question, sent piece by piece."""
        self.model.asked.clear()
        self.model.left.clear()
        self.model.leaving.clear()
        self.model.replies = [_reply(text, **how) for text in texts]

    @property
    def prompts(self) -> list[list[dict[str, str]]]:
        """Return the messages that the model received with each question."""
        return [asked["messages"] for asked in self.model.asked if "messages" in asked]


def _reply(text: str, size: int = 8, **how: Any) -> Reply:
    """Return an answer; an open one never ends."""
    pieces: Sequence[Delta] = [Delta(text[at : at + size]) for at in range(0, len(text), size)]
    return OPENAI.reply(*pieces, *(() if "stays" in how else (Usage(1200, 80),)), **how)


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    root = project.make(tmp_path_factory.mktemp("ask"))
    with asking(root) as made:
        yield made


@contextmanager
def asking(root: Path) -> Iterator[Asked]:
    """The project, indexed and served with a model."""
    project.index_all(root)
    with chatting() as model:
        with (root / "docindex.toml").open("a") as settings:
            settings.write(f'\n[llm]\nprovider = "openai"\nmodel = "{MODEL}"\nretries = 0\n')
            settings.write(f'base_url = "{model.address}/v1"\nprice_in = 1.0\nprice_out = 2.0\n')
        with serving(root, environment={"DOCINDEX_LLM__API_KEY": KEY}) as served:
            yield Asked(root, served, model, {path.rpartition("/")[2]: at for path, at in numbers(served).items()})


def numbers(served: Served, question: str = QUESTION, **filters: Any) -> dict[str, int]:
    """Return the numbers of the passages found, by path; a file with several passages has its first."""
    body = json.dumps({"question": question, "extractive": True, **filters}).encode()
    request = urllib.request.Request(f"{served.url}/api/v1/ask", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        passages = json.load(answer)["passages"]
    return {passage["path"]: passage["number"] for passage in reversed(passages)}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as started:
        yield started


@pytest.fixture
def tab(asked: Asked, browser: Browser) -> Iterator[Page]:
    with tab_of(asked.served, browser) as page:
        yield page


@pytest.fixture
def answer(asked: Asked) -> str:
    """An answer with one citation of each kind."""
    tank, manual = asked.numbers["tank.py"], asked.numbers["pumps.md"]
    return (
        f"The function `pump` moves water, at tank.py:16-18, once `check` has let the amount pass [{tank}]. "
        f"A `ValueError` is raised for a `litres` of zero [{manual}].\n\nIt is old [99]. 💧 Before it is started, "
        f'"open the valve first, then prime it with water" [{manual}].\n\n```python\npump(3)  # [{tank}]\n```\n'
    )


def ask(tab: Page, question: str = QUESTION) -> None:
    tab.locator("#question").fill(question)
    tab.locator("#question").press("Enter")


def expect_end(tab: Page, turns: int = 1) -> None:
    expect(tab.locator("#send")).to_be_visible()
    expect(tab.locator(".judge:visible")).to_have_count(turns)


def test_an_address_fills_the_form_and_asks_nothing(asked: Asked, tab: Page):
    asked.script("No.")
    tab.goto(f"{ADDRESS}&source=git/shop")
    expect(tab.locator("#question")).to_have_value(QUESTION)
    expect(tab.locator("#by-source")).to_have_value("git/shop")
    tab.wait_for_timeout(500)
    assert asked.prompts == []
    assert not [url for url in asked.served.requests if url.endswith("/api/v1/ask")]


def test_the_text_is_there_as_it_is_written_and_then_its_marks(asked: Asked, tab: Page, answer: str):
    asked.script(answer, drip_s=0.05)
    tab.goto("/ask")
    ask(tab)
    written = tab.locator(".answer[aria-busy]")
    expect(written).to_contain_text("The function `pump` moves")
    expect(tab.locator(".source").first).to_be_visible()
    expect(tab.locator("#stop")).to_be_visible()
    assert "Before it is started" not in written.inner_text()
    expect_end(tab)
    expect(tab.locator(".answer code").first).to_have_text("pump")
    expect(tab.locator(".answer")).not_to_contain_text("`pump`")
    expect(tab.locator("#said")).to_have_text("Answered. 4 citations: 2 supported, 1 doubtful, 1 missing")
    expect(tab.locator(".usage")).to_contain_text(f"openai/{MODEL} · 1,200 + 80 tokens")
    expect(tab.locator(".usage")).to_contain_text("$0.0014")


def test_stop_closes_the_request_to_the_model_within_a_second(asked: Asked, tab: Page):
    asked.script("The pump moves", drip_s=0.02, stays=True)
    tab.goto("/ask")
    ask(tab)
    expect(tab.locator(".answer")).to_contain_text("The pump moves")
    began = time.monotonic()
    tab.locator("#stop").click()
    assert asked.model.leaving.wait(1.0)
    assert time.monotonic() - began < 1.0
    expect(tab.locator(".state-line")).to_contain_text("Stopped")
    expect(tab.locator(".answer")).to_have_text("The pump moves")


def test_leaving_the_page_closes_it_too(asked: Asked, tab: Page):
    asked.script("The pump moves", drip_s=0.02, stays=True)
    tab.goto("/ask")
    ask(tab)
    expect(tab.locator(".answer")).to_contain_text("The pump")
    tab.goto("/sources")
    assert asked.model.leaving.wait(1.0)


def test_each_citation_says_what_its_check_says(asked: Asked, tab: Page, answer: str):
    asked.script(answer)
    tab.goto("/ask")
    ask(tab)
    expect_end(tab)
    tank, manual = asked.numbers["tank.py"], asked.numbers["pumps.md"]
    marks = tab.locator(".answer .citation")
    expect(marks).to_have_text([f"[{tank}]", f"[{manual}?]", "[99 missing]", f"[{manual}]"])
    expect(marks.nth(1)).to_have_attribute("title", re.compile(rf"Doubtful: \[{tank}\] contains more"))
    expect(marks.nth(2)).to_have_css("text-decoration-line", "line-through")
    assert marks.nth(2).evaluate("element => element.closest('a')") is None
    source = tab.locator(f".cited .source[data-number='{manual}']")
    expect(source).to_contain_text("supported")
    expect(source).to_contain_text(f"Doubtful: [{tank}] contains more of what the sentence names.")
    expect(tab.locator(".rest summary")).to_have_text("5 more that were read")
    marks.nth(0).hover()
    expect(tab.locator(f".cited .source[data-number='{tank}']")).to_have_class(re.compile(r"\blit\b"))
    expect(source).not_to_have_class(re.compile(r"\blit\b"))


def test_a_citation_opens_its_lines_beside_the_answer(asked: Asked, tab: Page, answer: str):
    asked.script(answer)
    tab.goto("/ask")
    ask(tab)
    expect_end(tab)
    tab.locator(".answer a.citation").first.click()
    expect(tab.locator("#pane #L16.marked")).to_be_in_viewport()
    expect(tab.locator("#pane .marked")).to_have_count(3)
    expect(tab).to_have_url(re.compile(r"at=git%2Fshop%2Ftank.py&from=16&to=18"))
    tab.reload()
    expect(tab.locator("#pane #L16.marked")).to_be_visible()
    expect(tab.locator(".answer a.citation.shown")).to_have_count(1)
    tab.go_back()
    expect(tab.locator("#pane .viewer")).to_have_count(0)
    expect(tab.locator(".turn")).to_have_count(1)


def test_on_a_narrow_screen_a_citation_opens_as_a_page(asked: Asked, tab: Page, answer: str):
    asked.script(answer)
    tab.set_viewport_size(NARROW)
    tab.goto("/ask")
    ask(tab)
    expect_end(tab)
    assert tab.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]
    tab.locator(".answer a.citation").first.click()
    expect(tab.locator("h1")).to_contain_text("tank.py")
    expect(tab.locator("#L16.marked")).to_be_in_viewport()
    tab.go_back()
    expect(tab.locator(".answer a.citation").first).to_be_visible()


def test_a_hostile_answer_is_text(asked: Asked, tab: Page):
    asked.script(HOSTILE, drip_s=0.01)
    tab.goto("/ask")
    ask(tab)
    expect_end(tab)
    answer = tab.locator(".answer")
    expect(answer).to_contain_text("![picture](https://evil.example/p.png)")
    assert answer.locator("img, script, iframe, object, style, [onerror]").count() == 0
    assert answer.locator("a:not(.citation)").count() == 0
    assert project.BIDI not in tab.locator("html").inner_html()
    tab.reload()
    expect(answer).to_contain_text("![picture]")
    assert answer.locator("img, script, iframe").count() == 0


def test_nothing_hides_in_the_text_while_it_is_written(asked: Asked, tab: Page):
    asked.script(f"{project.BIDI}first and {project.BIDI}then", drip_s=0.02, stays=True)
    tab.goto("/ask")
    ask(tab)
    expect(tab.locator(".answer")).to_have_text("�first and �then")
    tab.locator("#stop").click()
    tab.reload()
    expect(tab.locator(".answer")).to_have_text("�first and �then")


def test_the_page_itself_lets_no_other_element_pass(tab: Page):
    """The browser stores HTML rendered by the server, so it must sanitize mistakes of older versions."""
    tab.goto("/ask")
    frames = '<img src="/static/icon.svg" alt="no"><iframe src="https://evil.example"></iframe>'
    hostile = f'<p class="x" id="y" hidden>{frames}{project.SCRIPT}<a href="//evil.example">a</a>'
    passed = tab.evaluate(
        """async (html) => {
            const { safe } = await import("/static/safe.js");
            const place = document.createElement("div");
            place.append(...safe(html));
            return place.innerHTML;
        }""",
        f"{hostile}<a href='/file/git/shop/tank.py'>b</a></p><svg><a href='/file/x'>c</a></svg><h1>d</h1>",
    )
    assert passed == (
        "<p class=\"x\">document.documentElement.dataset.owned = 'yes'<a>a</a>"
        '<a href="/file/git/shop/tank.py">b</a></p>c<h3>d</h3>'
    )


def test_an_answer_is_copied_as_markdown_with_its_sources(asked: Asked, tab: Page, answer: str):
    asked.script(answer)
    tab.goto("/ask")
    ask(tab)
    expect_end(tab)
    tab.get_by_role("button", name="Copy as Markdown").click()
    expect(tab.get_by_text("Answer copied")).to_be_visible()
    copied = tab.evaluate("navigator.clipboard.readText()")
    tank, manual = asked.numbers["tank.py"], asked.numbers["pumps.md"]
    assert copied.startswith(
        f"The function `pump` moves water, at tank.py:16-18, once `check` has let the amount pass [{tank}]."
    )
    assert f"litres` of zero [{manual}?]" in copied
    assert "It is old [99 missing]. 💧 Before" in copied
    assert f'prime it with water" [{manual}].\n' in copied
    assert f"pump(3)  # [{tank}]" in copied
    listed = copied.partition("\nSources:\n\n")[2].splitlines()
    assert [line.partition(": ")[0] for line in listed] == [
        f"- [{tank}] `git/shop/tank.py:1-25`",
        f"- [{manual}] `library/manual/pumps.md:1-16`",
    ]


def test_a_further_question_goes_on_and_keeps_the_numbers(asked: Asked, tab: Page, answer: str):
    tank = asked.numbers["tank.py"]
    asked.script(answer, f"`check` refuses a zero [{tank}].")
    tab.goto("/ask")
    ask(tab)
    expect_end(tab)
    ask(tab, "And what does check refuse?")
    expect_end(tab, turns=2)
    second = tab.locator(".turn").nth(1)
    expect(second.locator("a.citation")).to_have_text(f"[{tank}]")
    expect(second.locator(f".source[data-number='{tank}'] a").first).to_have_text(re.compile("tank.py"))
    first, further = asked.prompts
    assert [message["content"] for message in further[1:3]] == [QUESTION, answer]
    assert len(first) == 2


def test_the_filters_go_with_the_question(asked: Asked, tab: Page):
    asked.script("Nothing.")
    tab.goto("/?q=pump&source=library/manual")
    tab.get_by_role("link", name="Ask this").click()
    tab.wait_for_url(re.compile("/ask.*source="))
    expect(tab.locator("#question")).to_have_value("pump")
    tab.locator("#question").press("Enter")
    expect_end(tab)
    expect(tab.locator(".narrowed")).to_have_text("source: library/manual")
    assert set(tab.locator(".source .badge:first-child").all_inner_texts()) == {"library/manual"}
    expect(tab).to_have_url(re.compile(r"/ask\?q=pump&source=library%2Fmanual&c="))


def test_the_history_survives_a_reload_and_can_be_opened_exported_and_deleted(asked: Asked, tab: Page, answer: str):
    asked.script(answer, "Another.")
    tab.goto("/ask")
    ask(tab)
    expect_end(tab)
    tab.reload()
    expect(tab.locator(".answer a.citation").first).to_be_visible()
    expect(tab.locator("#question")).to_have_value("")
    tab.get_by_role("button", name="New conversation").click()
    expect(tab.locator(".turn")).to_have_count(0)
    ask(tab, "Something else?")
    expect_end(tab)
    tab.locator("#past summary").click()
    expect(tab.locator("#past [data-reopen] span")).to_have_text(["Something else?", QUESTION])
    with tab.expect_download() as downloading:
        tab.get_by_role("button", name=f"Export {QUESTION}").click()
    exported = downloading.value.path().read_text(encoding="utf-8")
    assert exported.startswith(f"## {QUESTION}\n\nThe function `pump`")
    tab.locator("#past [data-reopen]").nth(1).click()
    expect(tab.locator(".turn .question")).to_have_text(QUESTION)
    tab.go_back()
    expect(tab.locator(".turn .question")).to_have_text("Something else?")
    tab.locator("#past summary").click()
    tab.get_by_role("button", name=f"Delete {QUESTION}").click()
    expect(tab.locator("#past li")).to_have_count(1)
    tab.get_by_role("button", name="Delete all").click()
    expect(tab.locator("#past")).to_be_hidden()
    tab.reload()
    expect(tab.locator(".turn")).to_have_count(0)
    assert tab.evaluate("localStorage.getItem('docindex.asked')") is None


def test_what_the_browser_keeps_is_bounded(tab: Page):
    tab.goto("/ask")
    kept = tab.evaluate(
        """async () => {
            const { conversations, newConversation, save } = await import("/static/past.js");
            const turn = { question: "?", text: "x".repeat(300_000), citations: [], passages: [] };
            for (let at = 0; at < 12; at++) save({ ...newConversation(), turns: [turn] });
            const large = newConversation();
            save({ ...large, turns: Array(20).fill(turn) });
            return [conversations().length, conversations()[0].id === large.id, conversations()[0].turns.length,
                    localStorage.getItem("docindex.asked").length];
        }"""
    )
    count, is_newest, turns, size = kept
    assert (count, is_newest, turns) == (1, True, 6)
    assert size <= 2_000_100


def test_a_conversation_that_the_server_forgot_goes_on_and_says_so(asked: Asked, tab: Page):
    asked.script("It moves.", "It is [1].")
    tab.goto("/ask")
    ask(tab)
    expect_end(tab)
    tab.evaluate(
        """() => {
            const kept = JSON.parse(localStorage.getItem("docindex.asked"));
            kept[0].server = "forgotten";
            localStorage.setItem("docindex.asked", JSON.stringify(kept));
        }"""
    )
    tab.reload()
    ask(tab, "And how is it started?")
    expect_end(tab, turns=2)
    expect(tab.locator(".noted").nth(1)).to_contain_text("The server no longer has this conversation")
    assert len(asked.prompts[-1]) == 2


def test_a_failure_says_what_to_do_and_the_question_can_be_asked_again(asked: Asked, tab: Page):
    asked.script("It moves.")
    asked.model.replies.insert(0, Reply(status=401))
    tab.goto("/ask")
    ask(tab)
    trouble = tab.locator(".trouble:visible")
    expect(trouble).to_contain_text("A model did not respond")
    expect(trouble).to_contain_text("DOCINDEX_LLM__API_KEY")
    assert KEY not in tab.locator("html").inner_html()
    tab.get_by_role("button", name="Ask again").click()
    expect_end(tab)
    expect(tab.locator(".answer")).to_have_text("It moves.")
    expect(tab.locator(".turn")).to_have_count(1)


def test_an_answer_that_breaks_off_stays_with_its_marks_and_says_so(asked: Asked, tab: Page):
    asked.script(f"`pump` moves water [{asked.numbers['tank.py']}].\n\nAnd")
    asked.model.replies = [Reply(asked.model.replies[0].pieces[:-2], ends=False)]
    tab.goto("/ask")
    ask(tab)
    expect_end(tab)
    expect(tab.locator(".state-line")).to_contain_text("The answer broke off")
    expect(tab.locator(".trouble:visible")).to_contain_text("broke")
    expect(tab.locator("a.citation")).to_have_count(1)


def test_changed_lines_say_so(asked: Asked, tab: Page, answer: str):
    tank = asked.root / "shop" / "tank.py"
    before = tank.read_text()
    asked.script(answer)
    tab.goto("/ask")
    try:
        tank.write_text(before.replace('"""Move water between', '"""Carry water between'))
        ask(tab)
        expect_end(tab)
    finally:
        tank.write_text(before)
    expect(tab.locator("a.citation").first).to_have_text(re.compile(r"\[\d changed\]"))
    expect(tab.locator("a.citation").first).to_have_attribute("title", re.compile("changed since they were indexed"))
    expect(tab.locator(".cited .source").first).to_contain_text("changed since it was indexed")
    expect(tab.locator(".checks")).to_contain_text("1 with changed lines")


def test_steps_of_an_agent_are_listed(tab: Page):
    events = [
        ("sources", {"query": QUESTION, "passages": [], "commits": [], "generation": 1, "warnings": ["no vectors"]}),
        ("delta", {"text": "Let me look."}),
        (
            "step",
            {
                "tool": "graph",
                "arguments": '{"name": "pump"}',
                "outcome": "3 callers",
                "passages": [],
                "is_error": False,
            },
        ),
        ("delta", {"text": "Three callers."}),
        (
            "answer",
            {
                "text": "Three callers.",
                "html": "<p>Three callers.</p>",
                "citations": [],
                "conversation": "c",
                "model": "m",
                "is_broken": False,
                "is_cut": True,
                "is_prompt_cut": False,
            },
        ),
    ]
    body = ": a heartbeat\n\n" + "".join(f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in events)
    sent: list[Any] = []

    def answered(route: Any) -> None:
        sent.append(route.request.post_data_json)
        route.fulfill(content_type="text/event-stream", body=body)

    tab.route("**/api/v1/ask", answered)
    tab.goto("/ask")
    tab.get_by_label("Look further (agent)").check()
    ask(tab)
    expect_end(tab)
    expect(tab.locator(".step")).to_have_text('graph {"name": "pump"} → 3 callers')
    expect(tab.locator(".answer")).to_have_text("Three callers.")
    expect(tab.locator(".noted")).to_have_text("no vectors")
    expect(tab.locator(".state-line")).to_contain_text("token limit")
    assert [one["agent"] for one in sent] == [True]
    tab.reload()
    expect(tab.locator(".step")).to_have_count(1)
    expect(tab.get_by_label("Look further (agent)")).to_be_checked()


def test_an_agent_calls_tools_of_the_server_and_what_they_give_is_read_and_cited(asked: Asked, tab: Page):
    """The model is scripted; tools, filters and checks are those of the server."""
    calls = [
        ToolCall("c1", "graph", '{"question": "callers", "symbol": "pump"}'),
        ToolCall("c2", "log", '{"query": "tank"}'),
        ToolCall("c3", "search", '{"query": "pump", "sources": ["library/manual"]}'),
        ToolCall("c4", "delete", "{}"),
    ]
    tank = numbers(asked.served, sources=["git/shop"])["tank.py"]
    asked.script(f"`pump` moves water between the well and a tank [{tank}].")
    asked.model.replies.insert(0, OPENAI.reply(Delta("Let me look."), *calls, Usage(10, 5)))
    tab.goto("/ask?source=git/shop")
    tab.get_by_label("Look further (agent)").check()
    ask(tab)
    expect_end(tab)
    steps = tab.locator(".step")
    expect(steps).to_have_text([re.compile(f"^{name} .* →") for name in ("graph", "log", "search", "delete")])
    expect(tab.locator(".step.problem")).to_have_text([re.compile("git/shop"), re.compile("tool 'delete' not found")])
    expect(tab.locator(".answer")).not_to_contain_text("Let me look")
    expect(tab.locator("a.citation")).to_have_text(f"[{tank}]")
    given = [message["content"] for message in asked.prompts[-1] if message["role"] == "tool"]
    assert "Tank.fill" in given[0]
    assert "Add the tank" in given[1]
    tab.locator("a.citation").click()
    expect(tab.locator("#pane .marked").first).to_be_visible()
    tab.reload()
    expect(steps).to_have_count(4)


def test_a_verdict_lands_in_the_file(asked: Asked, tab: Page, answer: str):
    asked.script(answer)
    tab.goto("/ask")
    ask(tab)
    expect_end(tab)
    tab.get_by_role("button", name="The answer is bad").click()
    tab.get_by_label("Comment (optional)").fill("the [99] is made up")
    tab.keyboard.press("Enter")
    expect(tab.get_by_text("Thank you for your feedback")).to_be_visible()
    expect(tab.get_by_role("button", name="The answer is bad")).to_have_attribute("aria-pressed", "true")
    record = json.loads((asked.root / ".docindex" / "feedback.jsonl").read_text().splitlines()[-1])
    assert (record["verdict"], record["comment"], record["question"]) == ("bad", "the [99] is made up", QUESTION)
    assert record["answer"] == answer
    assert [one["state"] for one in record["citations"]] == ["supported", "doubtful", "missing", "supported"]
    assert record["generation"] >= 1
    tab.reload()
    expect(tab.get_by_role("button", name="The answer is bad")).to_have_attribute("aria-pressed", "true")


def test_without_a_model_the_best_passages_are_shown_and_how_to_set_one(asked: Asked, tab: Page):
    with _no_model(asked):
        tab.goto("/ask")
        expect(tab.locator("#no-model")).to_contain_text('provider = "ollama"')
        ask(tab)
        expect_end(tab)
    expect(tab.locator(".answer")).to_contain_text("pumps.md")
    expect(tab.locator(".usage")).to_contain_text("without a model")


@contextmanager
def _no_model(asked: Asked) -> Iterator[None]:
    settings = asked.root / "docindex.toml"
    before = settings.read_text()
    settings.write_text(before.partition("\n[llm]")[0])
    try:
        yield
    finally:
        settings.write_text(before)


def test_a_model_that_cannot_be_asked_is_announced(asked: Asked, tab: Page):
    settings = asked.root / "docindex.toml"
    before = settings.read_text()
    settings.write_text(re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:1", before))
    try:
        tab.goto("/ask")
        expect(tab.locator("#unreachable")).to_contain_text("The language model is not available")
    finally:
        settings.write_text(before)


def test_the_keyboard_is_enough(asked: Asked, tab: Page, answer: str):
    asked.script(answer, drip_s=0.03)
    tab.goto("/?q=pump")
    expect(tab.locator("a[data-ask]")).to_be_visible()
    tab.keyboard.press("Tab")
    tab.keyboard.press("a")
    tab.wait_for_url("**/ask?q=pump")
    expect(tab.locator("#question")).to_have_value("pump")
    tab.keyboard.press("a")
    expect(tab.locator("#question")).to_be_focused()
    tab.keyboard.press("Control+A")
    tab.keyboard.type("How does it")
    tab.keyboard.press("Shift+Enter")
    tab.keyboard.type("move water?")
    tab.keyboard.press("Enter")
    expect(tab.locator(".turn .question")).to_have_text("How does it\nmove water?")
    tab.keyboard.press("Tab")
    tab.keyboard.press("Tab")
    expect(tab.locator("#stop")).to_be_focused()
    expect_end(tab)
    tab.locator("#question").focus()
    first = tab.locator(".answer a.citation").first
    for _ in range(60):
        tab.keyboard.press("Shift+Tab")
        if first.evaluate("element => element === document.activeElement"):
            break
    expect(first).to_be_focused()
    expect(tab.locator(".cited .source.lit")).to_have_count(1)
    tab.keyboard.press("Enter")
    expect(tab.locator("#pane .viewer")).to_be_visible()
    tab.locator("#pane .code").focus()
    tab.keyboard.press("Escape")
    expect(tab.locator("#pane .viewer")).to_have_count(0)
    expect(first).to_be_focused()


def test_axe_finds_nothing_serious_in_either_colours(asked: Asked, tab: Page, answer: str):
    asked.script(answer)
    tab.goto("/ask")
    expect_no_grave_barrier(tab)
    ask(tab)
    expect_end(tab)
    tab.get_by_role("button", name="The answer is good").click()
    tab.locator(".rest summary").click()
    expect_no_grave_barrier(tab)
    tab.locator(".answer a.citation").first.click()
    expect(tab.locator("#pane .marked").first).to_be_visible()
    tab.locator("#past summary").click()
    expect_no_grave_barrier(tab)


def test_without_javascript_it_says_so(asked: Asked, browser: Browser):
    page = browser.new_page(base_url=asked.served.url, java_script_enabled=False)
    page.goto(ADDRESS)
    page.get_by_role("main").get_by_role("link", name="Search", exact=True).click()
    expect(page.locator(".hit").first).to_contain_text("tank.py")
    page.close()


def test_logging_out_forgets_what_was_asked(asked: Asked, browser: Browser):
    token = "a-token-that-is-long-enough-0123456789"
    with (
        serving(
            asked.root, "--no-jobs", environment={"DOCINDEX_LLM__API_KEY": KEY, "DOCINDEX_SERVE__TOKEN": token}
        ) as served,
        tab_of(served, browser) as tab,
    ):
        asked.script("It moves.")
        tab.goto("/ask")
        tab.get_by_label("Server token").fill(token)
        tab.keyboard.press("Enter")
        tab.wait_for_url("**/ask")
        ask(tab)
        expect_end(tab)
        assert tab.evaluate("localStorage.getItem('docindex.asked')") is not None
        tab.get_by_role("button", name="Log out").click()
        expect(tab.get_by_label("Server token")).to_be_visible()
        assert tab.evaluate("localStorage.getItem('docindex.asked')") is None


@pytest.mark.skipif("DOCINDEX_SCREENSHOTS" not in os.environ, reason="no pictures are wanted")
def test_pictures_for_the_documentation(tmp_path_factory: pytest.TempPathFactory, browser: Browser):
    root = project.make(tmp_path_factory.mktemp("pictures"))
    project.add_repository(root, "docindex", ROOT / "docindex_dagster")
    with asking(root) as asked, tab_of(asked.served, browser) as tab:
        found = numbers(asked.served, pictures.ASKED, sources=["git/docindex"])
        asked.script(re.sub(r"\{(.+?)\}", lambda end: str(found[f"docindex_dagster/{end[1]}"]), pictures.ANSWERED))
        tab.goto("/")
        pictures.of_asking(tab)
