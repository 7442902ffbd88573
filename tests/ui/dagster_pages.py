"""Page helpers for the Dagster UI, located by the text that users read."""

import time
from urllib.parse import quote, urlencode

from playwright.sync_api import Locator, Page, expect

STEP_MS = 8_000  # each reload competes with the runs for the processor


def see(page: Page, thing: Locator, patience_s: float = 300) -> None:
    """Wait until the element is visible, reloading now and then as a user would."""
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
    """Open the lineage with every group expanded, for all assets or a selection in the UI's syntax."""
    page.goto(f"/asset-groups~{quote(selection)}" if selection else "/asset-groups")
    expect(page.get_by_role("button", name="Materialize all")).to_be_enabled()
    page.get_by_role("img", name="settings", exact=True).last.click()  # the last icon is the graph's
    switch = page.get_by_role("menuitem", name="all groups")
    expect(switch).to_be_visible()
    if "Expand" in switch.inner_text():  # otherwise the browser remembers the expanded state
        switch.click()
        page.keyboard.press("Escape")
    else:
        switch.press("Escape")  # sent to the switch, since a newly opened menu may lack focus
    expect(switch).to_be_hidden()


def node(page: Page, asset: str) -> Locator:
    """Return the lineage node of an asset."""
    return page.locator("foreignObject", has=page.get_by_text(asset, exact=True)).filter(has_text="Latest event")


def open_partition(page: Page, asset: str, key: str) -> None:
    """Open an asset's page for one source."""
    page.goto(f"/assets/{asset}?{urlencode({'view': 'partitions', 'partition': key})}")


def metadata(page: Page, name: str) -> Locator:
    """Return a row of the metadata."""
    return page.get_by_role("row").filter(has=page.get_by_role("cell", name=name, exact=True)).first


def outcome(page: Page, check: str) -> Locator:
    """Return a check's entry in the asset's check list."""
    return page.locator("span", has=page.get_by_title(check, exact=True)).last


def open_checks(page: Page, asset: str, check: str = "") -> None:
    """Open an asset's check list with one check selected."""
    page.goto(f"/assets/{asset}?{urlencode({'view': 'checks', 'checkDetail': check})}")


def open_runs(page: Page, key: str) -> None:
    """Open the run list of one source."""
    page.goto(f"/runs?{urlencode({'q[0]': f'tag:dagster/partition={key}'})}")


def open_newest_run(page: Page) -> None:
    """Return the first run of the list."""
    page.get_by_role("link", name="View", exact=True).first.click()


def open_launched_run(page: Page) -> str:
    """Return the run that a click launched, from the notification that names it briefly."""
    launched = page.get_by_text("Launched run")
    expect(launched).to_be_visible()
    run: str = launched.inner_text().split()[-1]
    page.goto("/runs")
    page.get_by_text(run, exact=True).first.click()
    return run


def metadata_names(page: Page) -> list[str]:
    """Return the names of all metadata rows shown."""
    expect(metadata(page, "seconds")).to_be_visible()
    table = page.locator("table", has=page.get_by_role("cell", name="seconds", exact=True)).last
    return sorted(table.locator("> tbody > tr > td:first-child").all_inner_texts())
