"""Citation marks: found outside code, at exact positions, however the answer is split."""

import re
from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from docindex_dagster.answering.citations import Checker, check
from docindex_dagster.answering.markdown import MarkReader, blocks, marks_of, parser, plain_lines
from tests.answering.hostile import HOSTILE
from tests.answering.samples import passage

PASSAGES = [
    passage(1, "def pump(level):\n    # raise the level\n    return drain(level)"),
    passage(2, "def drain(level):\n    return level - 1", name="drain", path="lib/drain.py"),
]
# Anything that could end a block, open code, or look like a mark.
PIECES = st.sampled_from(
    [
        *(
            "[1]",
            "[2, 1]",
            "[1][2]",
            "[ 3 ]",
            "x[1]",
            "f()[1]",
            "[",
            "]",
            "1",
            ",",
            "[1](u)",
            "\\[1]",
            "[1]: u",
            "![1]",
        ),
        *("`", "``", "```", "```py\n", "~~~\n", "\n```\n", "    ", "\t", "\n", "\n\n", "\r\n", "\r", " ", "> ", "- "),
        *("1. ", "# ", "===\n", "---\n", "|", "\\|", "| a | b |\n|---|---|\n", "<b>", "<!-- ", "*", "_", "\\", "&#91;"),
        *("`drain(level)` says so. ", "The pump ", "Done. ", '"raise the level of it" ', "é", "\0", "\u2028", "\x0c"),
    ]
)
ANSWERS = st.one_of(st.lists(PIECES, max_size=40).map("".join), st.sampled_from(sorted(HOSTILE.values())))


def pieces_of(text: str, cuts: Sequence[int]) -> list[str]:
    """Split a text at the given positions."""
    ends = sorted({min(cut, len(text)) for cut in cuts} | {len(text)})
    return [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def test_marks_are_found_with_what_they_are_to_prove():
    text = "The pump drains [1]. It is fast [2, 3]; see `f` [4][5]."

    found = [(text[mark.start : mark.end], mark.numbers, mark.claim.text) for mark in marks_of(text)]

    assert found == [
        ("[1]", (1,), "The pump drains"),
        ("[2, 3]", (2, 3), "It is fast"),
        ("[4]", (4,), "It is fast ; see `f`"),
        ("[5]", (5,), "It is fast ; see `f`"),
    ]


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("One. Two [1].", "Two"),
        ("One. Two. [1] Three.", "Two."),
        ("[1] says it.", "says it."),
        ("As in e.g. Flask [1].", "As in e.g. Flask"),
        ("It is `a. B` [1].", "It is `a. B`"),
        ("It ends. `b` begins [1].", "`b` begins"),
        ("- One item [1]\n- Another", "One item"),
        ("> quoted\n> on two lines [1]", "quoted on two lines"),
        ("| name | what |\n|---|---|\n| `f` | pumps [1] |", "`f` pumps"),
        ("# Heading [1]", "Heading"),
        ("It goes on\r\nin the next line [1]", "It goes on in the next line"),
        ("It goes on\n  in the next line [1]", "It goes on in the next line"),
        ("| `a \\| b` \\| c [1] |\n|---|", "`a | b` | c"),
        ("[1]: lib/pump.py", ": lib/pump.py"),
    ],
)
def test_the_claim_is_the_sentence_or_item_before_the_mark(text, claim):
    assert [mark.claim.text for mark in marks_of(text)] == [claim]


def test_code_that_stands_alone_before_a_mark_is_what_it_is_to_prove():
    assert [mark.claim.code for mark in marks_of("```python\nreturn 1\n```\n[1]\n\ntext\n\n[2]")] == ["return 1", ""]


@pytest.mark.parametrize(
    "text",
    [
        "`[1]`",
        "``a ` [1]``",
        "a `code\nover lines [1]` b",
        "```\n[1]\n```",
        "~~~py\n[1]\n```\n[2]\n~~~",
        "```\nnever closed [1]\n\n[2]",
        "    [1]",
        "\t[1]",
        "- item\n\n      [1]",
        "- item\n  ```\n  [1]\n  ```",
        "> ```\n> [1]\n> ```",
        "| a |\n|---|\n| `[1]` |",
    ],
)
def test_code_holds_no_mark(text):
    assert marks_of(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "x[1]",
        "it is xs[1]",
        "some_name[1]",
        "sys.argv[1]",
        "maxSize[1]",
        "items2[1]",
        "args[1].name",
        "args[1][a]",
        "args[1](x)",
        "x[0][1]",
        "f(a)[1]",
        "\\[1]",
        "[]",
        "[a]",
        "[1",
        "[2024]",
        "[^1]",
        "[1-3]",
        "[1,]",
        "[1\n]",
    ],
)
def test_a_subscript_and_what_is_no_list_of_numbers_is_no_mark(text):
    assert marks_of(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "(so)[1]",
        "`x`[1]",
        "so.[1]",
        "It is signed[1].",
        "It is signed[1], and sent",
        "Der Schlüssel (“salt”[1])",
        "**so**[1]",
        "[1](https://e.example)",
        "ポンプは水を汲みます[1]。",
        "タンカー[1]",
        "水泵抽水[1]。",
        "펌프가 물을 퍼 올린다[1].",
        "ปั๊มน้ำ[1]",
    ],
)
def test_a_mark_may_follow_anything_else_without_a_space(text):
    assert [mark.numbers for mark in marks_of(text)] == [(1,)]


def test_an_unclosed_backtick_is_no_code():
    assert [mark.numbers for mark in marks_of("a ` b [1]\n\nc ` [2]")] == [(1,), (2,)]


def test_marks_come_as_soon_as_their_block_has_ended():
    reader = MarkReader()

    assert reader.feed("So it is [1].\n") == []
    assert [mark.numbers for mark in reader.feed("\nAnd so on\n")] == [(1,)]
    assert reader.finish() == []


@given(ANSWERS, st.lists(st.integers(0, 200)))
@example("a\r\n\r\nb [1]\r\n", [2, 4])
@example("```\r\n[1]\r\n```\r\n[2]", [4, 5, 9])
def test_every_split_of_an_answer_gives_the_same_marks_and_checks(text, cuts):
    checker = Checker(PASSAGES)
    found = [citation for piece in pieces_of(text, cuts) for citation in checker.feed(piece)]

    assert found + checker.finish() == check(text, PASSAGES)


@given(ANSWERS)
def test_a_stream_has_the_marks_of_the_whole_text(text):
    plain = plain_lines(text)
    whole = [(spot.position, spot.numbers) for block in blocks(parser().parse(plain), plain) for spot in block.marks]
    reader = MarkReader()
    streamed = [mark for character in text for mark in reader.feed(character)] + reader.finish()

    assert [(mark.start, mark.numbers) for mark in streamed] == whole


def test_lines_of_other_white_space_move_no_position():
    assert [mark.start for mark in marks_of("\u2028\n[1]\n\x0c\nand [2]")] == [2, 12]


@given(ANSWERS)
@example("\u2028\n[1]")
def test_no_mark_is_invented_and_positions_are_exact(text):
    end = 0
    for mark in marks_of(text):
        written = text[mark.start : mark.end]
        assert re.fullmatch(r"\[[0-9 ,]+\]", written)
        assert mark.numbers == tuple(map(int, re.findall(r"\d+", written)))
        assert mark.start >= end
        end = mark.end


SENTENCES = st.lists(st.sampled_from(["The pump drains", "See `f(x)`", "Ü so", "a \\` b"]), min_size=1, max_size=3)
CODE = st.sampled_from(["[1]", "x = y[1]", "[2] [3]", "text [1][2]", ""])
NUMBERS = st.lists(st.integers(1, 999), min_size=1, max_size=3)


@st.composite
def written(draw):
    """Generate an answer and its marks with their positions."""
    text, marks = "", []
    for _ in range(draw(st.integers(1, 6))):
        end = draw(st.sampled_from(["\n", "\r\n"]))
        match draw(st.sampled_from(["prose", "item", "quote", "heading", "fence", "indented", "span", "row"])):
            case "fence":
                fence = draw(st.sampled_from(["```", "~~~", "````"]))
                text += f"{fence}py{end}{draw(CODE)}{end}{fence}{end}{end}"
            case "indented":
                text += f"para{end}{end}    x {draw(CODE)}{end}{end}"
            case "span":
                text += f"see `{draw(CODE)} ` here{end}{end}"
            case kind:
                prefix = {"item": "- ", "quote": "> ", "heading": "## ", "row": f"|a|b|{end}|-|-|{end}|x|"}
                text += prefix.get(kind, "")
                for sentence in draw(SENTENCES):
                    text += f"{sentence} "
                    mark = str(draw(NUMBERS))
                    marks.append((len(text), mark))
                    text += f"{mark}. "
                text += f"{'|' if kind == 'row' else ''}{end}{end}<!-- -->{end}{end}"
    return text, marks


@given(written())
def test_every_mark_that_was_written_is_found_where_it_was_written(answer):
    text, marks = answer

    assert [(mark.start, text[mark.start : mark.end]) for mark in marks_of(text)] == marks


def test_a_long_answer_of_one_block_takes_no_quadratic_time():
    reader = MarkReader()
    line = "The pump drains `x` a little more with every line of this paragraph\n"
    parsed = 0
    for _ in range(2000):
        before = reader._parsed
        reader.feed(line)
        parsed += reader._parsed if reader._parsed != before else 0

    assert parsed < 20 * 2000 * len(line)


def test_marks_may_follow_each_other_behind_a_word():
    assert [mark.numbers for mark in marks_of("It is signed[1][2], and sent[3].")] == [(1,), (2,), (3,)]
