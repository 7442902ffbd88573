"""The overview page: the number of sources that need attention comes first, and all text is escaped."""

import re

import pytest
from markdown_it import MarkdownIt

from docindex_dagster.sources.history import RepositoryStatistics
from docindex_dagster.status.catalog import CatalogEntry
from docindex_dagster.status.overview import as_markdown, contents, human_size
from docindex_dagster.status.source_status import Runs, SourceState, State

HOSTILE = (
    "it broke\n\n| a | `b` <script>alert(1)</script> [x](https://evil.example) ![y](z) **c** www.evil.example # \\|"
)
RUN = "11111111-2222-3333-4444-555555555555"
CHECKED_AT = 1_795_000_000.0  # 2026-11-18 11:06:40 UTC
NOW = CHECKED_AT + 60 * 60
DAY_S = 24 * 60 * 60
FIGURES = RepositoryStatistics(1_204, 3, 5, "0" * 40, None, None, is_shallow=False)


def entry(key: str, files: int = 2, repository: RepositoryStatistics | None = FIGURES) -> CatalogEntry:
    languages = {"python": 5, "markdown": 9, "go": 1, "rust": 3}
    changed_at = "2026-11-17T03:04:05+00:00"
    return CatalogEntry(key, files, 18, 1_234_567, 4, 5, languages, "v", "0" * 40, changed_at, 1_000, repository)


def good(key: str) -> SourceState:
    return SourceState(key, entry(key), Runs("succeeded", RUN, CHECKED_AT), State.OK)


def failed(key: str, reason: str = "no space left") -> SourceState:
    return SourceState(key, entry(key), Runs("failed", RUN, CHECKED_AT, RUN, reason), State.FAILED, reason)


def page(statuses: list[SourceState], now: float = NOW) -> str:
    return as_markdown(statuses, now)


def rendered(text: str) -> str:
    html: str = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(text)
    return html


def table_rows(html: str) -> list[list[str]]:
    return [re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL) for row in html.split("<tr>")[2:]]


def test_it_begins_with_what_needs_attention_and_the_totals():
    first, *_ = page([failed("git/b"), good("git/a"), good("git/c")]).splitlines()

    assert first == "**1 of 3 sources needs attention.** Searchable: 6 files in 54 chunks (3.7 MB) from 3 sources."


def test_all_well_is_reported_as_well():
    assert page([good("git/a")]).startswith("**All sources are healthy.** ")


def test_a_row_tells_the_state_and_leads_to_the_run():
    (row,) = table_rows(rendered(page([good("git/a")])))

    assert row == ["git/a", f'<a href="/runs/{RUN}">ok</a>', "11:06", "2", "18"]


def test_contents_tell_size_languages_revision_and_history():
    statuses = [good("git/a"), SourceState("library/b", entry("library/b", repository=None), Runs(), State.OK)]

    of_git, of_library = contents(statuses, NOW).splitlines()

    about = "1.2 MB of markdown, python, rust; changed Nov 17; revision 00000000"
    assert of_git == f"- **git/a**: {about}; commits 1,000, branches 3, tags 5"
    assert of_library == f"- **library/b**: {about}"


def test_contents_are_of_what_is_indexed():
    new = SourceState("git/new", None, Runs(), State.WAITING_FOR_RUN)

    assert re.findall(r"\*\*(.+)\*\*", contents([new, good("git/a")], NOW)) == ["git/a"]
    assert contents([new], NOW) == "Nothing is indexed yet."


@pytest.mark.parametrize(("days", "shown"), [(0, "11:06"), (1, "Nov 18"), (30, "Nov 18"), (60, "2026-11-18")])
def test_times_are_short_and_stay_true(days, shown):
    (row,) = table_rows(rendered(page([good("git/a")], NOW + days * DAY_S)))

    assert row[2] == shown


def test_the_page_says_when_it_was_made():
    assert page([good("git/a")]).endswith("Times are UTC, as of Nov 18, 12:06.")


def test_a_handful_of_sources_is_shown_without_a_click():
    statuses = [failed("git/application", "discovered_files: cannot clone: no such repository")]
    statuses += [good(f"library/manual-{number}") for number in range(4)]

    assert len(page(statuses)) < 1000
    assert len(contents(statuses, NOW)) < 1000


def test_a_source_that_is_not_indexed_has_a_row_too():
    text = page([SourceState("git/new", None, Runs("queued", RUN), State.WAITING_FOR_RUN)])

    (row,) = table_rows(rendered(text))
    assert row == ["git/new", f'<a href="/runs/{RUN}">waiting for its first run, queued</a>', "", "0", "0"]
    assert "needs attention" not in text


def test_hostile_names_of_contents_stay_text():
    known = CatalogEntry(HOSTILE, 1, 1, 1, 0, 0, {HOSTILE: 1}, "v", HOSTILE, "2026-11-17T03:04:05+00:00", 0)

    html = rendered(contents([SourceState(HOSTILE, known, Runs(), State.OK)], NOW))

    assert len(re.findall("<li>", html)) == 1
    assert not re.search(r"<(script|img|code|a)\b", html)


def test_hostile_names_of_sources_stay_text():
    status = failed(HOSTILE)

    html = rendered(page([status, good("git/a")]))

    assert "<script" not in html
    assert "<img" not in html
    assert "<code" not in html
    assert set(re.findall(r'href="([^"]*)"', html)) == {f"/runs/{RUN}"}
    assert [len(row) for row in table_rows(html)] == [5, 5]
    shown = "it broke | a | `b` &lt;script&gt;alert(1)&lt;/script&gt; [x](https://evil.example) ![y](z) **c** www"
    assert shown in html
    assert "www.evil" not in page([status])  # the Dagster UI links bare addresses


def test_hundreds_of_sources_stay_bounded_and_say_what_is_left_out():
    statuses = [failed(f"git/f{number:03}") for number in range(60)]
    statuses += [good(f"git/g{number:03}") for number in range(540)]

    html = rendered(page(statuses))

    assert len(table_rows(html)) == 500
    assert "60 of 600 sources need attention" in html
    assert "100 more are not shown" in html
    assert len(page(statuses)) < 100_000
    assert contents(statuses, NOW).count("\n- ") == 499


def test_without_sources_it_says_how_to_begin():
    assert "docindex index PATH" in page([])


@pytest.mark.parametrize(
    ("size", "shown"), [(0, "0 bytes"), (999, "999 bytes"), (1000, "1.0 kB"), (2_500_000, "2.5 MB"), (4e12, "4.0 TB")]
)
def test_sizes_are_readable(size, shown):
    assert human_size(int(size)) == shown
