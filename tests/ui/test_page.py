"""The page of `docindex serve` in a browser, on a project partly written by attackers."""

import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.serving.web import project
from tests.ui import pictures
from tests.ui.conftest import ROOT
from tests.ui.served import NARROW, Served, browsing, expect_no_grave_barrier, serving, tab_of

pytestmark = pytest.mark.ui

PUMP = "/file/git/shop/tank.py"
HOSTILE = f"/file/git/shop/{quote(project.HOSTILE_NAME)}"
JOB_MS = 60_000  # for a Dagster run on a busy machine


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root = project.make(tmp_path_factory.mktemp("page"))
    if os.environ.get("DOCINDEX_SCREENSHOTS"):
        project.add_repository(root, "docindex", ROOT / "docindex_dagster")
    with (root / "docindex.toml").open("a") as settings:
        settings.write("\n[evaluation]\ncollect = true\n")
    project.index_all(root)
    with serving(root) as made:
        yield made


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as started:
        yield started


@pytest.fixture
def tab(served: Served, browser: Browser) -> Iterator[Page]:
    with tab_of(served, browser) as page:
        yield page


def test_typing_finds_and_the_address_remembers(tab: Page):
    tab.goto("/")
    tab.keyboard.press("/")
    expect(tab.locator("#q")).to_be_focused()
    tab.keyboard.type("move water between the well and a tank", delay=5)
    expect(tab.locator(".hit").first).to_contain_text("tank.py")
    expect(tab.locator("#said")).to_contain_text("result")
    expect(tab).to_have_url(re.compile(r"\?q=move\+water"))
    tab.reload()
    expect(tab.locator(".hit").first).to_contain_text("tank.py")
    expect(tab.locator("#q")).to_have_value("move water between the well and a tank")


def test_filters_narrow_and_the_browser_goes_back_to_before(tab: Page):
    tab.goto("/?q=pump")
    expect(tab.get_by_text("pumps.md").first).to_be_visible()
    tab.locator("#by-language").select_option("python")
    expect(tab.get_by_text("pumps.md")).to_have_count(0)
    expect(tab).to_have_url(re.compile("language=python"))
    tab.go_back()
    expect(tab.get_by_text("pumps.md").first).to_be_visible()
    expect(tab.locator("#by-language")).to_have_value("")


def test_an_answer_that_comes_late_does_not_replace_a_newer_one(tab: Page):
    tab.goto("/")

    def late(route):
        time.sleep(0.6)
        with suppress(Exception):  # the page aborted the request
            route.continue_()

    tab.route(re.compile(r"/part/results\?q=marmot"), late)
    tab.locator("#q").fill("marmot")
    tab.wait_for_timeout(250)
    tab.locator("#q").fill("prime it with water")
    expect(tab.locator(".hit").first).to_contain_text("pumps.md")
    tab.wait_for_timeout(700)
    expect(tab.locator(".hit").first).to_contain_text("pumps.md")


def test_a_result_says_why_it_is_there(tab: Page):
    tab.goto("/?q=pump")
    first = tab.locator(".hit").first
    first.get_by_text("Why this result?").click()
    expect(first.get_by_role("rowheader", name="bm25")).to_be_visible()


def test_a_result_is_noted_as_the_answer_and_taken_back(tab: Page):
    tab.goto("/?q=move+water+between+the+well+and+a+tank")
    button = tab.locator(".hit").first.get_by_role("button", name="This answers it")
    expect(button).to_have_attribute("aria-pressed", "false")
    button.focus()
    tab.keyboard.press("Enter")
    expect(button).to_have_attribute("aria-pressed", "true")
    expect(tab.locator("#said")).to_have_text("Marked as an answer")
    expect_no_grave_barrier(tab)
    tab.reload()
    expect(button).to_have_attribute("aria-pressed", "true")
    button.click()
    expect(button).to_have_attribute("aria-pressed", "false")
    expect(tab.locator("#said")).to_have_text("No longer marked as an answer")
    tab.goto("/?q=%3F%3F+%21")
    tab.locator(".hit").first.get_by_role("button", name="This answers it").click()
    expect(tab.locator(".note.bad")).to_contain_text("the question is empty")


def test_a_result_opens_beside_the_others_with_its_lines_marked(tab: Page):
    tab.goto("/?q=move+water+between+the+well+and+a+tank")
    tab.locator(".hit a.open").first.click()
    expect(tab.locator("#pane #L16.marked")).to_be_in_viewport()  # the best-matching line of the chunk
    expect(tab.locator("#pane")).to_contain_text("Callers")
    expect(tab.locator(".hit.shown")).to_have_count(1)
    expect(tab).to_have_url(re.compile(r"at=git%2Fshop%2Ftank.py"))
    tab.reload()
    expect(tab.locator("#pane .marked").first).to_be_visible()
    tab.go_back()
    expect(tab.locator("#pane .viewer")).to_have_count(0)


def test_the_keyboard_is_enough(tab: Page):
    tab.goto("/?q=pump")
    tab.keyboard.press("j")
    expect(tab.locator(".hit a.open").nth(0)).to_be_focused()
    tab.keyboard.press("j")
    expect(tab.locator(".hit a.open").nth(1)).to_be_focused()
    tab.keyboard.press("k")
    expect(tab.locator(".hit a.open").nth(0)).to_be_focused()
    tab.keyboard.press("Enter")
    expect(tab.locator("#pane .viewer")).to_be_visible()
    tab.keyboard.press("o")
    expect(tab.locator(".outline a").first).to_be_focused()
    tab.keyboard.press("Escape")
    expect(tab.locator(".outline a").first).to_be_hidden()
    tab.keyboard.press("Escape")
    expect(tab.locator("#pane .viewer")).to_have_count(0)
    expect(tab.locator(".hit a.open").nth(0)).to_be_focused()
    tab.keyboard.press("?")
    expect(tab.get_by_role("dialog")).to_be_visible()
    tab.keyboard.press("Escape")
    expect(tab.get_by_role("dialog")).to_be_hidden()


def test_shortcuts_can_be_turned_off(tab: Page):
    tab.goto("/?q=pump")
    tab.locator("#help").click()
    tab.get_by_label("Single-letter shortcuts").uncheck()
    tab.get_by_role("button", name="Close").click()
    tab.keyboard.press("/")
    expect(tab.locator("#q")).not_to_be_focused()


def test_lines_are_marked_by_clicks_and_the_link_to_them_can_be_sent(tab: Page):
    tab.goto(PUMP)
    tab.locator("#L16 .n").click()
    expect(tab.locator(".relations .of")).to_have_text("pump")
    tab.locator("#L18 .n").click(modifiers=["Shift"])
    expect(tab.locator(".marked")).to_have_count(3)
    expect(tab).to_have_url(re.compile(r"\?from=16&to=18#L16$"))
    tab.keyboard.press("y")
    expect(tab.get_by_text("Link copied")).to_be_visible()
    sent = tab.evaluate("navigator.clipboard.readText()")
    assert sent == tab.url
    tab.goto("about:blank")
    tab.goto(sent)
    expect(tab.locator(".marked")).to_have_count(3)


def test_callers_lead_to_their_places(tab: Page):
    tab.goto(f"{PUMP}?symbol=pump")
    expect(tab.get_by_role("group", name="3 callers of pump")).to_be_visible()
    tab.locator(".two").get_by_role("link", name="test_pressure").click()
    expect(tab.locator("h1")).to_contain_text("test_pressure.py")
    expect(tab.locator(".marked")).to_contain_text("return pump(litres) * 3")


def test_callers_in_the_pane_open_there(tab: Page):
    tab.goto("/?q=pump&at=git/shop/tank.py&symbol=pump")
    tab.locator(".neighbourhood").get_by_role("link", name="Tank.drain").click()
    expect(tab.locator("#pane .marked")).to_have_count(1)
    expect(tab.locator("#pane .marked")).to_contain_text("return pump(-litres)")
    expect(tab.locator("#q")).to_have_value("pump")


def test_the_outline_marks_what_it_names(tab: Page):
    tab.goto(PUMP)
    tab.locator(".outline").get_by_role("link", name="check").click()
    expect(tab.locator(".marked").first).to_have_attribute("id", "L21")
    expect(tab.locator(".relations .of")).to_have_text("check")


def test_indexing_shows_its_progress_and_its_end(tab: Page):
    tab.goto("/sources")
    tab.get_by_role("button", name="Index changes of library/manual").click()
    expect(tab.get_by_text("Started the index job of library/manual")).to_be_visible()
    expect(tab.locator("#work .job")).to_contain_text("library/manual")
    expect(tab.get_by_role("progressbar", name="Progress of library/manual").first).to_be_visible()
    expect(tab.locator("#pulse")).to_contain_text("manual")
    expect(tab.locator("#work .job")).to_have_count(0, timeout=JOB_MS)
    tab.goto("/jobs")
    expect(tab.locator("tbody tr").first).to_contain_text("succeeded")


def test_a_job_can_be_cancelled(tab: Page):
    tab.goto("/sources")
    tab.get_by_label("Other ways to index git/shop").click()
    tab.get_by_role("button", name="Rebuild").locator("visible=true").click()
    tab.get_by_role("button", name="Cancel the job of git/shop").click()
    tab.goto("/jobs")
    expect(tab.locator("tbody tr").first).to_contain_text("canceled", timeout=JOB_MS)


def test_what_the_api_refuses_is_shown(tab: Page):
    tab.goto("/sources")
    tab.get_by_label("URL").fill("https://user:secret@example.org/x.git?token=1")
    tab.get_by_label("Name").fill("../..")
    tab.get_by_role("button", name="Add and index").click()
    expect(tab.locator(".note.bad")).to_be_visible()


def test_colours_can_be_chosen_and_stay(tab: Page):
    tab.goto("/")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = tab.evaluate(ground)
    tab.locator("#theme").click()
    tab.locator("#theme").click()
    assert tab.evaluate(ground) != light
    tab.goto(PUMP)
    assert tab.evaluate(ground) != light
    expect(tab.locator("#theme")).to_have_attribute("aria-label", "Colours: dark")


def test_the_colours_of_the_system_are_those_of_the_page(tab: Page):
    tab.goto("/")
    light = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    tab.emulate_media(color_scheme="dark")
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") != light


@pytest.mark.parametrize(
    "address",
    [
        "/?q=marmot",
        f"/?q=marmot&at={quote('git/shop/' + project.HOSTILE_NAME)}&from=1&to=3",
        HOSTILE,
        "/file/library/manual/marmots.md",
        "/file/library/manual/marmots.md?as=prose",
        "/log?q=marmots",
        "/source/git/shop",
        "/?q=" + quote(project.SCRIPT + project.HANDLER),
    ],
)
def test_what_attackers_wrote_does_nothing(tab: Page, address: str):
    tab.goto(address)
    expect(tab.locator("body")).to_contain_text(re.compile("marmot|onerror"))
    assert tab.locator("main img, main script, main iframe").count() == 0
    assert project.BIDI not in tab.locator("html").inner_html()


def test_a_hostile_file_opens_beside_its_result(tab: Page):
    tab.goto("/?q=attack_x")
    tab.locator(".hit a.open", has_text="onerror").first.click()
    expect(tab.locator("#pane .code")).to_contain_text("attack_x")
    tab.keyboard.press("y")
    expect(tab.get_by_text("Link copied")).to_be_visible()
    tab.goto(tab.evaluate("navigator.clipboard.readText()"))
    expect(tab.locator("h1")).to_contain_text("onerror=alert(1)")


@pytest.mark.parametrize("address", ["/", "/?q=pump", PUMP, "/sources", "/source/git/shop", "/jobs", "/log"])
def test_a_narrow_screen_shows_each_page_without_scrolling_sideways(tab: Page, address: str):
    tab.set_viewport_size(NARROW)
    tab.goto(address)
    assert tab.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]


def test_on_a_narrow_screen_a_result_opens_as_a_page(tab: Page):
    tab.set_viewport_size(NARROW)
    tab.goto("/?q=move+water+between+the+well+and+a+tank")
    tab.locator(".hit a.open").first.click()
    expect(tab.locator("h1")).to_contain_text("tank.py")


def test_without_javascript_one_can_search_and_read(served: Served, browser: Browser):
    page = browser.new_page(base_url=served.url, java_script_enabled=False)
    page.goto("/")
    page.locator("#q").fill("prime it with water")
    page.keyboard.press("Enter")
    page.locator(".hit a.open").first.click()
    expect(page.locator("h1")).to_contain_text("pumps.md")
    expect(page.locator(".marked").first).to_be_visible()
    page.close()


@pytest.mark.parametrize(
    "address",
    [
        "/",
        "/?q=pump",
        "/?q=move+water&at=git/shop/tank.py&symbol=pump",
        "/?q=zeppelin&mode=literal",
        f"{PUMP}?symbol=pump",
        "/file/library/manual/pumps.md?as=prose",
        "/sources",
        "/source/git/shop",
        "/jobs",
        "/log",
        "/log?q=tank",
        "/problems/query",
        "/nowhere",
    ],
)
def test_axe_finds_nothing_serious_in_either_colours(tab: Page, address: str):
    tab.goto(address)
    for details in tab.locator("details:not(.menu)").all()[:3]:
        details.evaluate("element => element.open = true")
    expect_no_grave_barrier(tab)


def test_pictures_for_the_documentation(tab: Page):
    tab.goto("/")
    pictures.of_the_page(tab)
