"""Numbered passages: numbers continue through a conversation and are never reused."""

from dataclasses import replace

from docindex_dagster.answering.passages import Passages
from docindex_dagster.search.context import Context, ContextPassage

PUMP = ContextPassage(
    source="library/sample",
    path="lib/pump.py",
    start_line=10,
    end_line=11,
    kind="function",
    name="pump",
    language="python",
    text="def pump():\n    return 1",
    tokens=20,
    chunk_ids=("a", "b"),
    stale=False,
    score=0.75,
)
DRAIN = replace(PUMP, path="lib/drain.py", name="drain", text="def drain():\n    return 2")
GATE = replace(PUMP, path="lib/gate.py", name="gate", text="gate =\\\n    3")


def context(*passages: ContextPassage) -> Context:
    return Context("query", len(passages), 1000, 10, passages)


def numbers(passages):
    return [(passage.number, passage.path) for passage in passages]


def test_a_passage_says_all_that_its_context_says():
    _, (found,) = Passages().found(context(PUMP))

    assert (found.number, found.source, found.path, found.span) == (1, "library/sample", "lib/pump.py", (10, 11))
    assert (found.kind, found.name, found.language, found.score) == ("function", "pump", "python", 0.75)
    assert (found.text, found.chunk_ids, found.stale, found.is_cut) == (PUMP.text, ("a", "b"), False, False)


def test_numbers_go_on_from_one_question_to_the_next():
    first, new = Passages().found(context(PUMP, DRAIN))
    assert numbers(new) == [(1, "lib/pump.py"), (2, "lib/drain.py")]

    second, new = first.found(context(GATE))
    assert numbers(new) == [(3, "lib/gate.py")]
    assert numbers(second.kept) == [(1, "lib/pump.py"), (2, "lib/drain.py"), (3, "lib/gate.py")]


def test_a_passage_that_is_found_again_keeps_its_number_and_says_what_is_so_now():
    first, _ = Passages().found(context(PUMP, DRAIN))

    second, new = first.found(context(GATE, replace(DRAIN, stale=True, score=0.1)))

    assert numbers(new) == [(3, "lib/gate.py"), (2, "lib/drain.py")]
    assert [(passage.stale, passage.score) for passage in second.numbered([2])] == [(True, 0.1)]


def test_another_text_at_the_same_place_has_another_number():
    first, _ = Passages().found(context(PUMP))

    assert numbers(first.found(context(replace(PUMP, text="def pump():\n    return 9")))[1]) == [(2, "lib/pump.py")]


def test_a_number_is_not_given_again_when_its_passage_is_dropped():
    first, _ = Passages().found(context(PUMP, DRAIN))
    kept = first.newest(1)
    assert numbers(kept.kept) == [(2, "lib/drain.py")]

    assert numbers(kept.found(context(PUMP))[1]) == [(3, "lib/pump.py")]
    assert numbers(first.newest(0).found(context(PUMP))[1]) == [(3, "lib/pump.py")]


def test_in_a_passage_every_character_can_be_seen():
    _, (found,) = Passages().found(context(replace(PUMP, text="a\u202eb\u200b\x1b[2J")))

    assert found.text == "a\ufffdb\ufffd\u241b[2J"


def test_lines_are_given_by_their_numbers_in_the_file():
    _, (found, page, cut) = Passages().found(
        context(
            PUMP, replace(PUMP, page=4, end_line=90), replace(PUMP, text="def pump():\n…", end_line=10, is_cut=True)
        )
    )

    assert (found.lines(11, 11), found.lines(10, 11)) == ("    return 1", PUMP.text)
    assert not page.has_exact_lines
    assert page.lines(80, 81) == PUMP.text
    assert cut.has_exact_lines
    assert cut.lines(10, 10) == "def pump():"
