"""Answers and files crafted to be slow to render."""

import time

import pytest

from docindex_dagster.answering.citations import check
from docindex_dagster.answering.markdown import MAX_ROW, marks_of, parser
from docindex_dagster.answering.rendering import as_html
from docindex_dagster.core.errors import QueryError
from docindex_dagster.render.html.prose import render_markdown
from docindex_dagster.search import cancellation

SIZE = 140_000
# Forty times the time on an idle machine. Quadratic time would take minutes.
LONGEST_CPU_S = 20.0


def row(cell: str) -> str:
    count = SIZE // (len(cell) + 5)
    return "\n".join("|" + part * count for part in ("a|", "-|", f"{cell}|"))


SLOW = {
    "cells": row("b"),
    "cells with marks": row("w [1]"),
    "rows without cells": "|" + "a|" * 1000 + "\n|" + "-|" * 1000 + "\n" + "|b\n" * (SIZE // 3),
    "paragraphs": "a [1]\n\n" * (SIZE // 7),
}


@pytest.mark.parametrize("text", SLOW.values(), ids=SLOW)
def test_an_answer_takes_time_in_proportion_to_its_length(text):
    began = time.process_time()
    as_html(text, check(text, []), lambda _: "")
    assert time.process_time() - began < LONGEST_CPU_S


def test_a_claim_begins_in_the_cells_to_the_left():
    text = "|a|b|c|\n|-|-|-|\n|The valve|opens|first [1]|\n"
    (mark,) = marks_of(text)
    assert mark.claim.text == "The valve opens first"


def test_of_a_long_row_a_claim_has_the_end():
    (mark,) = marks_of(f"|a|b|\n|-|-|\n|{'word ' * MAX_ROW}|last [1]|\n")
    assert mark.claim.text.endswith("word last")
    assert len(mark.claim.text) <= MAX_ROW


@pytest.mark.parametrize(
    "work",
    [
        lambda: parser().parse("a\n\nb"),
        lambda: as_html("a", [], lambda _: ""),
        lambda: check("a", []),
        lambda: render_markdown("# a", "library/x", "a.md"),
    ],
    ids=["parse", "html", "check", "prose"],
)
def test_work_ends_once_nobody_waits_for_it(work):
    with cancellation.cancel_when(lambda: True), pytest.raises(QueryError, match="its caller is gone"):
        work()
