"""UI screenshots for the documentation, taken during the tests if DOCINDEX_SCREENSHOTS names a folder."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from playwright.sync_api import FloatRect, Locator, Page, expect

from tests.ui import dagster_pages as ui

ASKED = "What happens when two runs publish at once?"
# Path suffixes stand for passage numbers. The scripted model makes one mistake and invents one citation.
ANSWERED = """\
One of them waits. Each run publishes within `run.publishing()`, so the caller of `publish` holds the publication \
lock [{pipeline/publication.py}] for as long as it writes.

- **The stores** hold exactly the rows of the source afterwards: `publish` verifies them first, and a \
`VerificationError` leaves the published generation as it was [{stores/publish.py}].
- **Damaged stores** raise a `DamagedStoreError`; with `force`, they are built anew from the tables of all \
sources [{stores/publish.py}].
- **The golden query** is asked by `_golden` once something new is published \
[{serving/jobs/queue.py}], and its failure is a warning alone [{pipeline/publication.py}].

Both are retried three times [99].
"""
MARGIN = 16
MATERIALISED = 10  # assets; Dagster does not materialize the eleventh


def of_lineage(page: Page) -> None:
    """Capture the lineage alone. At this window width, Dagster fills the nodes with color and enlarges their names."""
    with _tab(page, width=1760, height=1300) as tab:
        if tab:
            ui.open_lineage(tab)
            expect(tab.locator("foreignObject [style*='-green']")).to_have_count(MATERIALISED)
            _take(tab, "lineage", around=tab.locator("foreignObject").all())


def of_chunks(page: Page, key: str) -> None:
    """Capture what `chunks` shows for a source."""
    with _tab(page, width=1500, height=1100, scale=1) as tab:
        if tab:
            ui.open_partition(tab, "chunks", key)
            expect(ui.metadata(tab, "sample")).to_be_visible()
            _take(tab, "chunks-in-the-ui")


def of_catalogue(page: Page) -> None:
    """Capture the sources that need attention and the overview."""
    with _tab(page, width=2500, height=1000) as tab:
        if tab:
            tab.goto("/assets/index_catalog")
            _take(tab, "index-catalog", around=[ui.metadata(tab, name) for name in ("attention", "overview")])


def of_the_page(page: Page) -> None:
    """Capture the page of `docindex serve` in both color schemes: a search with an open file."""
    for scheme in ("light", "dark"):
        with _tab(page, width=1440, height=900, scale=1) as tab:
            if tab:
                tab.emulate_media(color_scheme=scheme)
                opened = "at=git/docindex/docindex_dagster/search/freshness.py&symbol=changed_files"
                tab.goto(f"/?q=which+files+changed+since+they+were+indexed&source=git/docindex&{opened}")
                expect(tab.locator("#pane .marked").first).to_be_visible()
                _take(tab, f"serve-search-{scheme}")


def of_asking(page: Page) -> None:
    """Capture the Ask view: the answer `ANSWERED` and the lines of one citation."""
    with _tab(page, width=1440, height=900, scale=1) as tab:
        if tab:
            tab.goto(f"/ask?q={quote(ASKED)}&source=git/docindex")
            tab.locator("#question").press("Enter")
            tab.locator(".answer a.citation", has_text=re.compile(r"\[\d+\]")).nth(1).click()
            expect(tab.locator("#pane .marked").first).to_be_visible()
            tab.locator(".talk").evaluate("element => { element.scrollTop = 0; }")
            tab.mouse.move(0, 0)
            _take(tab, "serve-ask-light")


@contextmanager
def _tab(page: Page, width: int, height: int, scale: int = 2) -> Iterator[Page | None]:
    """Open a separate tab and leave the tests' tab alone; yield None if no screenshots are requested."""
    browser = page.context.browser
    if browser is None or not os.environ.get("DOCINDEX_SCREENSHOTS"):
        yield None
        return
    address = page.evaluate("location.origin")
    tab = browser.new_page(
        base_url=address,
        viewport={"width": width, "height": height},
        device_scale_factor=scale,
        reduced_motion="reduce",
    )
    yield tab
    tab.close()


def _take(tab: Page, name: str, around: list[Locator] | None = None) -> None:
    path = Path(os.environ["DOCINDEX_SCREENSHOTS"]) / f"{name}.png"
    tab.screenshot(path=path, clip=_box(around) if around else None, animations="disabled")


def _box(things: list[Locator]) -> FloatRect:
    """Return the bounding box of the elements, plus a margin."""
    for thing in things:
        expect(thing).to_be_visible()
    boxes = [box for thing in things if (box := thing.bounding_box())]
    left, top = min(box["x"] for box in boxes), min(box["y"] for box in boxes)
    right = max(box["x"] + box["width"] for box in boxes)
    bottom = max(box["y"] + box["height"] for box in boxes)
    return {
        "x": left - MARGIN,
        "y": top - MARGIN,
        "width": right - left + 2 * MARGIN,
        "height": bottom - top + 2 * MARGIN,
    }
