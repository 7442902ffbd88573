"""PDFs are indexed like documents: found by content, cited with the page, and shown as extracted text."""

import json
import random
import string
from pathlib import Path
from typing import Any

import pytest
from rich.style import Style

from docindex_dagster.render import console
from docindex_dagster.search.model import Hit, Snippet
from tests.cli.conftest import index_in
from tests.pdfs import HOSTILE, page, pdf, text_page

PAGES = [
    text_page("Wells", "A well is dug by hand where the ground is soft."),
    text_page("Centrifugal pumps", "Prime the pump before its first use.", "Its impeller turns at 1450 rpm."),
]
KEY = "ghp" + "_" + "".join(random.Random(3).choices(string.ascii_letters + string.digits, k=36))


def write(folder: Path) -> None:
    manual = folder / "manual"
    (manual / "wells.pdf").write_bytes(pdf(PAGES, [("Wells", 0), ("Centrifugal pumps", 1)]))
    (manual / "scan.pdf").write_bytes(pdf([page()]))
    (manual / "bomb.pdf").write_bytes(HOSTILE["bomb"])
    (manual / "pointer.pdf").write_text("version https://git-lfs.github.com/spec/v1\n")
    (manual / "keys.pdf").write_bytes(pdf([text_page("Keys", f"token = {KEY}")]))
    (manual / "index.md").write_text("# Reading\n\nSee [pumps](wells.pdf#page=2).\n")


@pytest.fixture(scope="module")
def indexed_once(tmp_path_factory):
    return index_in(tmp_path_factory.mktemp("indexed"), write=write)


@pytest.fixture
def indexed(run_indexed):
    return run_indexed


def hit_of(run, *arguments: str) -> dict[str, Any]:
    found = json.loads(run("search", *arguments, "-k", "1", "--json").out)
    first: dict[str, Any] = (found["matches"] if isinstance(found, dict) else found)[0]
    return first


def test_a_hit_says_its_page_and_what_stands_there(indexed):
    first = indexed("search", "how fast does the impeller turn", "-k", "1").out
    assert first.startswith(" 1 manual/wells.pdf:8  section  ")
    assert "  page 2\n" in first
    assert "   Its impeller turns at 1450 rpm." in first

    hit = hit_of(indexed, "where is a well dug by hand")
    assert (hit["path"], hit["page"], hit["language"], hit["stale"]) == ("wells.pdf", 1, "pdf", False)


def test_the_link_of_a_hit_opens_its_page(indexed):
    hit = hit_of(indexed, "impeller")
    hit["snippet"] = Snippet(hit["snippet"]["text"], 0, ())
    (span,) = console.place(Hit(**hit), Path("/nowhere")).spans
    assert isinstance(span.style, Style)
    assert span.style.link == (Path.cwd() / "manual/wells.pdf").as_uri() + "#page=2"

    assert "open page 2 of " in indexed("search", "impeller", "--open", "1").err


def test_exact_text_is_found_in_the_text_of_a_pdf(indexed):
    found = indexed("search", "-m", "literal", "1450 rpm", "--lines", "1").out
    assert "manual/wells.pdf:8:23:Its impeller turns at 1450 rpm.  page 2\n" in found
    assert "manual/wells.pdf-7-Prime the pump before its first use.\n" in found
    assert hit_of(indexed, "-m", "regex", r"\d+ rpm")["page"] == 2


def test_show_and_context_give_the_text(indexed):
    shown = indexed("show", "manual/wells.pdf:8").out
    assert "Prime the pump" in shown
    assert "page" in shown
    assert "Its impeller turns at 1450 rpm." in indexed("search", "impeller", "--context", "500").out


def test_secrets_in_the_text_of_a_pdf_are_masked(indexed):
    assert KEY not in indexed("show", "manual/keys.pdf").out
    assert "token = ****" in indexed("show", "manual/keys.pdf").out


def test_a_link_leads_to_the_page(indexed):
    edges = json.loads(indexed("graph", "export", "--format", "json").out)["links"]
    (link,) = [edge for edge in edges if edge["predicate"] == "links_to"]
    assert link["target"].endswith("wells.pdf#Centrifugal pumps")


def test_what_cannot_be_read_is_found_by_its_name_and_says_why(indexed):
    assert "pdf: no text found; the pages contain only images" in indexed("why", "manual/scan.pdf").out
    assert "pdf: " in indexed("why", "manual/bomb.pdf").out
    assert "named like pdf, but its signature differs" in indexed("why", "manual/pointer.pdf").out
    assert hit_of(indexed, "scan", "--language", "pdf")["path"] == "scan.pdf"

    assert "library/manual: degraded: " in indexed("status").out


def test_a_changed_pdf_is_stale_until_it_is_read_again(indexed):
    assert "(nothing changed)" in indexed("index", "manual").out
    Path("manual/wells.pdf").write_bytes(pdf([text_page("Tanks", "A tank holds water.")]))
    assert hit_of(indexed, "impeller")["stale"] is True

    assert indexed("index", "manual").code == 0
    assert hit_of(indexed, "what does a tank hold", "--language", "pdf")["path"] == "wells.pdf"
