"""Where the Dagster UI shows what, found by what a user reads there."""

import time
from urllib.parse import quote, urlencode

from playwright.sync_api import Locator, Page, expect

STEP_MS = 8_000  # loading a page anew is work for the processor that the runs need, too


def see(page: Page, thing: Locator, patience_s: float = 120) -> None:
    """Wait until it stands on the page, which is loaded again now and then as a user would."""
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        try:
            expect(thing).to_be_visible(timeout=STEP_MS)
        except AssertionError:
            page.reload()
        else:
            return
    expect(thing).to_be_visible(timeout=STEP_MS)


def open_lineage(page: Page, selection: str = "") -> None:
    """The graph of assets, with every group opened: of all, or of a selection as users type it."""
    page.goto(f"/asset-groups~{quote(selection)}" if selection else "/asset-groups")
    expect(page.get_by_role("button", name="Materialize all")).to_be_enabled()
    page.get_by_role("img", name="settings", exact=True).last.click()  # the graph's; the first is the application's
    switch = page.get_by_role("menuitem", name="all groups")
    expect(switch).to_be_visible()
    if "Expand" in switch.inner_text():  # else the browser remembers that they are open
        switch.click()
        page.keyboard.press("Escape")
    else:
        switch.press("Escape")  # where it is, since a menu that has just opened need not have the focus
    expect(switch).to_be_hidden()


def node(page: Page, asset: str) -> Locator:
    """What the graph says of an asset."""
    return page.locator("foreignObject", has=page.get_by_text(asset, exact=True)).filter(has_text="Latest event")


def open_partition(page: Page, asset: str, key: str) -> None:
    """What an asset shows of one source."""
    page.goto(f"/assets/{asset}?{urlencode({'view': 'partitions', 'partition': key})}")


def metadata(page: Page, name: str) -> Locator:
    """A row of the metadata."""
    return page.get_by_role("row").filter(has=page.get_by_role("cell", name=name, exact=True)).first


def outcome(page: Page, check: str) -> Locator:
    """What the list of an asset's checks says of one."""
    return page.locator("span", has=page.get_by_title(check, exact=True)).last


def open_checks(page: Page, asset: str, check: str = "") -> None:
    """The list of an asset's checks, and beside it one of them."""
    page.goto(f"/assets/{asset}?{urlencode({'view': 'checks', 'checkDetail': check})}")


def open_runs(page: Page, key: str) -> None:
    """The list of the runs of one source."""
    page.goto(f"/runs?{urlencode({'q[0]': f'tag:dagster/partition={key}'})}")


def open_newest_run(page: Page) -> None:
    """The first run of the list."""
    page.get_by_role("link", name="View", exact=True).first.click()


def open_launched_run(page: Page) -> str:
    """The run that a click has launched; it is named for a moment, and returned."""
    launched = page.get_by_text("Launched run")
    expect(launched).to_be_visible()
    run: str = launched.inner_text().split()[-1]
    page.goto("/runs")
    page.get_by_text(run, exact=True).first.click()
    return run


def metadata_names(page: Page) -> list[str]:
    """The names of all rows of the metadata that is shown."""
    expect(metadata(page, "seconds")).to_be_visible()
    table = page.locator("table", has=page.get_by_role("cell", name="seconds", exact=True)).last
    return sorted(table.locator("> tbody > tr > td:first-child").all_inner_texts())
