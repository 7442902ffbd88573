"""Text of PDF files: headings, paragraphs and pages. A broken file affects no other file."""

import resource
import subprocess
import sys

from docindex_dagster.documents.load import load_document
from docindex_dagster.documents.model import Converted
from docindex_dagster.documents.pdf import convert
from tests.pdfs import BODY, GOOD, HOSTILE, page, pdf, stream, text_page


def read(data: bytes) -> Converted:
    return convert(data, "pdf")


def headings(found: Converted) -> list[tuple[str, ...]]:
    return [section.heading_path for section in load_document(found.text, "a.pdf", "pdf").sections]


def test_headings_are_those_of_the_outline_whatever_their_size():
    pages = [text_page("1 Pumps", BODY, size=10), text_page("Unnamed", BODY, size=30), text_page("Tanks", BODY)]

    found = read(pdf(pages, [("Pumps", 0), ("Tanks", 2), ("Nowhere shown", 2)]))

    assert found.text.count("Pumps") == 1
    assert headings(found) == [("Pumps",), ("Tanks",), ("Nowhere shown",)]
    assert "\nUnnamed\n" in found.text


def test_without_an_outline_larger_letters_make_headings():
    lines = [("Handbook", 24.0, 760.0), ("Pumps", 16.0, 700.0), (BODY, 10.0, 680.0), ("and their", 16.0, 600.0)]
    found = read(pdf([page(*lines, ("valves", 16.0, 580.0), (BODY, 10.0, 560.0))]))

    assert headings(found) == [("Handbook",), ("Handbook", "Pumps"), ("Handbook", "and their valves")]
    assert found.text.startswith("# Handbook\n\n## Pumps\n\nThe pump")


def test_pages_begin_where_their_text_does():
    found = read(pdf([text_page("One", BODY), page(), text_page("Three", BODY)]))

    lines = found.text.split("\n")
    assert [lines[start - 1] for start in found.pages] == ["# One", "# Three", "# Three"]


def test_what_pages_repeat_in_their_margins_is_left_out():
    pages = [
        text_page(f"Part {name}", f"Only on {name}.", top=f"Handbook of wells {at}", bottom=f"page {at} of 4")
        for at, name in enumerate("abcd", start=1)
    ]
    text = read(pdf(pages)).text

    assert "Handbook of wells" not in text
    assert "of 4" not in text
    assert [f"Only on {name}." in text for name in "abcd"] == [True] * 4


def test_lines_of_two_pages_that_are_alike_stay():
    assert read(pdf([text_page("Pumps", BODY), text_page("Tanks", BODY)])).text.count(BODY) == 2


def test_words_that_a_line_cuts_are_put_together_and_paragraphs_are_apart():
    found = read(pdf([text_page("Pumps", "It is a centri-", "fugal pump.", "A"), text_page("x", "y")]))
    assert "It is a centrifugal\npump.\nA\n" in found.text

    lines = [
        ("One paragraph.", 10.0, 700.0),
        ("Goes on.", 10.0, 688.0),
        ("The next.", 10.0, 660.0),
        ("It.", 10.0, 648.0),
    ]
    assert read(pdf([page(*lines)])).text == "One paragraph.\nGoes on.\n\nThe next.\nIt.\n"


def test_what_looks_like_markup_is_text():
    found = read(pdf([text_page("Setup", "# apt install pump", "```")]))
    assert headings(found) == [("Setup",)]


def test_a_file_without_text_says_so():
    assert read(pdf([page()])).problem == "pdf: no text found; the pages contain only images"


def test_a_damaged_page_costs_itself_alone():
    pages = [text_page("One", BODY), page(), text_page("Three", "Water.")]
    found = read(pdf(pages, more={8: stream(b"\x00\x01", b"/Filter/FlateDecode")}))
    assert "Water." in found.text


def test_encrypted_files_are_not_read():
    about = b"/Encrypt<</Filter/Standard/V 1/R 2/O<%b>/U<%b>/P -4>>/ID[<00><00>]" % (b"41" * 32, b"42" * 32)
    found = read(GOOD.replace(b"/Root 1 0 R", b"/Root 1 0 R" + about))

    assert found.text == ""
    assert "encrypted" in found.problem


READ = """
import resource
from tests.pdfs import HOSTILE
from docindex_dagster.documents.pdf import convert
convert(HOSTILE["cut"], "pdf")
for name, data in HOSTILE.items():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = convert(data, "pdf")
    print(name, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10, len(found.text))
"""


def test_hostile_files_take_bounded_memory_and_end():
    ended = subprocess.run([sys.executable, "-c", READ], capture_output=True, text=True, timeout=600, check=True)
    taken = {name: int(megabytes) for name, megabytes, _ in map(str.split, ended.stdout.splitlines())}

    assert taken.keys() == HOSTILE.keys()
    assert max(taken.values()) < 1_100


def test_the_limit_of_memory_ends_with_the_file():
    before = resource.getrlimit(resource.RLIMIT_DATA)
    read(HOSTILE["cut"])
    assert resource.getrlimit(resource.RLIMIT_DATA) == before
