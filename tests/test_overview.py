"""The page about the index: what needs attention comes first, and no text on it is more than text."""

import re

import pytest
from markdown_it import MarkdownIt

from docindex_dagster.catalog import CatalogEntry
from docindex_dagster.overview import as_markdown, human_size
from docindex_dagster.standing import Runs, Standing

HOSTILE = (
    "it broke\n\n| a | `b` <script>alert(1)</script> [x](https://evil.example) ![y](z) **c** www.evil.example # \\|"
)
RUN = "11111111-2222-3333-4444-555555555555"


def entry(key: str, files: int = 2) -> CatalogEntry:
    languages = {"python": 5, "markdown": 9, "go": 1, "rust": 3}
    return CatalogEntry(key, files, 18, 1_234_567, 4, 5, languages, "v", "0" * 40, "2026-11-21T03:04:05+00:00", 7)


def good(key: str) -> Standing:
    return Standing(key, entry(key), Runs("succeeded", RUN, 1_795_000_000.0), "ok")


def failed(key: str, reason: str = "no space left") -> Standing:
    return Standing(key, entry(key), Runs("failed", RUN, 1_795_000_000.0, RUN, reason), "failed", reason)


def rendered(standings: list[Standing]) -> str:
    html: str = (
        MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(as_markdown(standings))
    )
    return html


def table_rows(html: str) -> list[list[str]]:
    return [re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL) for row in html.split("<tr>")[2:]]


def test_it_begins_with_what_needs_attention_and_the_totals():
    first, *_ = as_markdown([failed("git/b"), good("git/a"), good("git/c")]).splitlines()

    assert first == "**1 of 3 sources needs attention.** 6 files in 54 chunks (3.7 MB) of 3 sources can be searched."


def test_all_well_is_said_as_well():
    assert as_markdown([good("git/a")]).startswith("**All sources are well.** ")


def test_a_row_tells_state_size_languages_times_and_leads_to_the_run():
    (row,) = table_rows(rendered([good("git/a")]))

    assert row == [
        *("git/a", "ok", f'<a href="/runs/{RUN}">succeeded</a>', "2026-11-18 11:06", "2026-11-21 03:04"),
        *("2", "18", "7", "1.2 MB", "markdown, python, rust", "000000000000"),
    ]


def test_a_failure_is_told_in_one_line_with_its_reason_and_its_run():
    html = rendered([failed("git/b", "the disk is full"), good("git/a")])

    (item,) = re.findall(r"<li>(.*?)</li>", html, re.DOTALL)
    assert item == f'<strong>git/b</strong> (failed) (<a href="/runs/{RUN}">its run</a>): the disk is full'


def test_a_source_that_is_not_indexed_has_a_row_too():
    (row,) = table_rows(rendered([Standing("git/new", None, Runs("queued", RUN), "waiting for its first run")]))

    assert row[:6] == ["git/new", "waiting for its first run", f'<a href="/runs/{RUN}">queued</a>', "", "", "0"]
    assert "needs attention" not in as_markdown([Standing("git/new", None, Runs(), "waiting for its first run")])


@pytest.mark.parametrize("place", ["reason", "name"])
def test_hostile_text_stays_text(place):
    standing = failed(HOSTILE) if place == "name" else failed("git/b", HOSTILE)

    html = rendered([standing, good("git/a")])

    assert "<script" not in html
    assert "<img" not in html
    assert "<code" not in html
    assert set(re.findall(r'href="([^"]*)"', html)) == {f"/runs/{RUN}"}
    assert [len(row) for row in table_rows(html)] == [11, 11]
    shown = "it broke | a | `b` &lt;script&gt;alert(1)&lt;/script&gt; [x](https://evil.example) ![y](z) **c** www"
    assert shown in html
    assert "www.evil" not in as_markdown([standing])  # bare links are links in the Dagster UI


def test_hundreds_of_sources_stay_bounded_and_say_what_is_left_out():
    standings = [failed(f"git/f{number:03}") for number in range(60)]
    standings += [good(f"git/g{number:03}") for number in range(540)]

    html = rendered(standings)

    assert len(table_rows(html)) == 500
    assert len(re.findall("<li>", html)) == 50
    assert "10 more need attention" in html
    assert "100 more are not shown" in html
    assert len(as_markdown(standings)) < 100_000


def test_without_sources_it_says_how_to_begin():
    assert "docindex index PATH" in as_markdown([])


@pytest.mark.parametrize(
    ("size", "shown"), [(0, "0 bytes"), (999, "999 bytes"), (1000, "1.0 kB"), (2_500_000, "2.5 MB"), (4e12, "4.0 TB")]
)
def test_sizes_are_readable(size, shown):
    assert human_size(int(size)) == shown
