"""Citation checks: whether the cited passage supports the sentence."""

from dataclasses import replace

import pytest

from docindex_dagster.answering.answer import changes_on_disk
from docindex_dagster.answering.citations import State, check
from docindex_dagster.sources.model import Source
from tests.answering.samples import passage

PUMP = passage(
    1,
    "def pump(level):\n    # Raise the level of the lock,\n    # then close it.\n"
    "    gate.close()\n    return drain(level)",
    first=10,
)
DRAIN = passage(2, "def drain(level):\n    open_valve()\n    return level - 1", path="lib/drain.py", name="drain")
NOTES = passage(3, "Locks are filled in the morning.", path="docs/notes.md", name="Mornings", kind="section")
PASSAGES = [PUMP, DRAIN, NOTES]


def only(text, passages=PASSAGES, **other):
    """Return the only citation of an answer."""
    (found,) = check(text, passages, **other)
    return found


def test_a_citation_is_supported_where_the_passage_has_what_the_sentence_names():
    found = only("`pump` closes the `gate` [1].")

    assert (found.state, found.number, found.passage, found.chunk_ids) == (State.SUPPORTED, 1, PUMP, ("chunk-1",))
    assert (found.start_line, found.end_line, found.is_moved) == (10, 14, False)


def test_it_is_doubtful_where_another_passage_has_it_and_says_which():
    found = only("The valve is opened by `open_valve` [1].")

    assert (found.state, found.better) == (State.DOUBTFUL, 2)


def test_it_is_doubtful_where_another_passage_has_more_than_twice_as_much():
    some = passage(1, "alpha = 1", name=None)
    most = passage(2, "alpha = beta = gamma = delta = 1", name=None)

    found = check("`alpha`, `beta`, `gamma`, `delta` [1]. `alpha` and `beta` [1]. `alpha` [1].", [some, most, NOTES])

    assert [(one.state, one.better) for one in found] == [
        (State.DOUBTFUL, 2),
        (State.DOUBTFUL, 2),
        (State.SUPPORTED, None),
    ]
    assert found[0].support > 0.1


def test_it_is_doubtful_where_no_passage_has_it():
    found = only("`reactor.meltdown()` is called [1].")

    assert (found.state, found.better, found.support) == (State.DOUBTFUL, None, 0.0)


def test_a_sentence_that_names_nothing_is_unchecked():
    assert only("This is quite a good idea [1].").state is State.UNCHECKED


def test_a_number_without_passage_is_missing():
    found = only("`pump` closes the `gate` [9].")

    assert (found.state, found.passage, found.chunk_ids, found.stale) == (State.MISSING, None, (), None)


def test_each_number_of_a_mark_is_checked_by_itself():
    found = check("`pump` closes the `gate` [1, 9].", PASSAGES)

    assert [(one.number, one.state, one.start, one.end) for one in found] == [
        (1, State.SUPPORTED, 25, 31),
        (9, State.MISSING, 25, 31),
    ]


def test_a_quote_stands_in_the_passage_but_for_white_space_and_marks_of_comments():
    found = only('It says "Raise   the level of the lock, then close it." [1]')

    assert (found.state, found.start_line, found.end_line) == (State.SUPPORTED, 11, 12)


@pytest.mark.parametrize("marks", ["„“", "„”", "“”", "«»", '""'])
def test_quotation_marks_of_other_languages_quote_too(marks):
    first, last = marks
    right = only(f"`pump` sagt {first}Raise the level of the lock, then close it.{last} und “mehr” [1].")
    wrong = only(f"`pump` sagt {first}Raise the level of the lake, then close it.{last} und “mehr” [1].")

    assert (right.state, right.start_line, right.end_line) == (State.SUPPORTED, 11, 12)
    assert wrong.state is State.DOUBTFUL


@pytest.mark.parametrize("quote", ["Raise the level of the lake, then", "raise the level of the lock"])
def test_a_quote_that_stands_otherwise_in_the_passage_is_doubtful(quote):
    assert only(f'`pump` of `gate` says "{quote}" [1].').state is State.DOUBTFUL


def test_a_right_quote_with_other_lines_moves_the_lines():
    found = only("It ends by `return drain(level)` (lines 10-11) [1].")

    assert (found.state, found.start_line, found.end_line, found.is_moved) == (State.SUPPORTED, 14, 14, True)


def test_lines_that_the_sentence_names_are_the_cited_ones_where_they_have_what_it_says():
    right = only("`gate` is closed at line 13 [1].")
    wrong = only("`gate` is closed at line 10 [1].")

    assert (right.start_line, right.end_line, right.is_moved) == (13, 13, False)
    assert (wrong.state, wrong.start_line, wrong.end_line, wrong.is_moved) == (State.SUPPORTED, 10, 14, False)


def test_code_before_a_mark_is_looked_for_as_a_quote():
    found = only("```python\nopen_valve()\nreturn level - 1\n```\n[2]")

    assert (found.state, found.start_line, found.end_line) == (State.SUPPORTED, 2, 3)


def test_what_all_passages_have_supports_none():
    everywhere = [
        passage(number, f"class Part{number}(Base):\n    level = {number}", name=None) for number in range(1, 6)
    ]

    found = check("`Part3` has a `level` [3]. `Part3` has a `level` [4].", everywhere)

    assert [one.state for one in found] == [State.SUPPORTED, State.DOUBTFUL]
    assert found[1].better == 3


def test_the_name_and_the_path_of_a_passage_count():
    body = passage(1, "    return 1", name="Station.total", path="lib/station.py")

    assert only("`Station.total` is one [1].", [body, DRAIN]).state is State.SUPPORTED


def test_where_lines_are_not_those_of_the_file_a_quote_has_none():
    page = replace(NOTES, end_line=90, page=3)

    found = only('"Locks are filled in the morning" [3]', [page])

    assert (found.state, found.start_line, found.end_line) == (State.SUPPORTED, 1, 90)


def test_no_passage_supports_nothing():
    assert check("All is well [1].", [])[0].state is State.MISSING


class TestChangesOnDisk:
    """Only changes to the cited lines count."""

    @pytest.fixture
    def source(self, tmp_path):
        (tmp_path / "lib").mkdir()
        return Source("library/sample", "library", "sample", tmp_path)

    def stale(self, source, text, answer="`gate` is closed at line 13 [1].", stale=True):
        (source.path / "lib" / "pump.py").write_text(text)
        changes = changes_on_disk({source.key: source})
        return only(answer, [replace(PUMP, stale=stale)], changes=changes).stale

    def test_lines_that_stand_elsewhere_in_the_file_have_not_changed(self, source):
        assert self.stale(source, f"import gate\n\n\n{PUMP.text}\n") is False

    def test_neither_have_they_where_others_of_the_passage_did(self, source):
        assert self.stale(source, PUMP.text.replace("drain", "flood")) is False

    def test_lines_that_are_gone_have(self, source):
        assert self.stale(source, PUMP.text.replace("close()", "open()")) is True

    def test_all_of_a_passage_is_meant_where_no_lines_are_named(self, source):
        assert self.stale(source, PUMP.text.replace("drain", "flood"), "`pump` closes the `gate` [1].") is True

    def test_a_file_that_cannot_be_read_has_changed(self, source):
        changes = changes_on_disk({source.key: source})

        assert only("`gate` [1].", [replace(PUMP, stale=True)], changes=changes).stale is True

    @pytest.mark.parametrize("stale", [None, False])
    def test_a_file_that_is_as_it_was_is_not_read(self, source, stale):
        assert self.stale(source, "other", stale=stale) is stale
