"""Tests that the instruction is added to a rules file once, between two markers, and removed without a trace."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docindex_dagster.cli.agents.editing import TextError, has_rules, instruction, with_rules, without_rules
from docindex_dagster.serving.tools import Tools


def add(text, name="docindex", *, has_front_matter=False):
    return with_rules(text, name, has_front_matter=has_front_matter)


@given(st.text(st.sampled_from("# a\n\r`"), max_size=12))
def test_what_is_added_is_there_once_and_removed_to_the_byte(text):
    added = add(text)

    assert has_rules(added, "docindex")
    assert added.startswith(text)
    assert add(added) == added
    assert without_rules(added, "docindex") == text


@pytest.mark.parametrize("has_front_matter", [False, True])
def test_a_file_that_is_made_goes_again(has_front_matter):
    made = add(None, has_front_matter=has_front_matter)

    assert made.startswith("---\n") is has_front_matter
    assert without_rules(made, "docindex") is None


def test_an_older_instruction_is_replaced_where_it_stands():
    older = instruction("docindex").replace("best passages", "passages")
    text = f"# Ours\n\n{older}\n\nMore of ours.\n"

    assert add(text) == f"# Ours\n\n{instruction('docindex')}\n\nMore of ours.\n"


def test_each_server_has_an_instruction_of_its_own():
    both = add(add("Ours.\n", "one"), "two")

    assert has_rules(both, "one")
    assert has_rules(both, "two")
    assert not has_rules(both, "docindex")
    assert without_rules(both, "one") == add("Ours.\n", "two")
    assert without_rules(both, "three") == both


@pytest.mark.parametrize(
    ("before", "behind", "left"),
    [
        ("Ours.\n\n", "\n\nMore.\n", "Ours.\n\nMore.\n"),
        ("Ours.\n", "\nMore.\n", "Ours.\nMore.\n"),  # added by hand
        ("Ours.\r\n", "\r\nMore.\r\n", "Ours.\r\nMore.\r\n"),
        ("Ours. ", " More.", "Ours.  More."),
        ("\n", "\nMore.\n", "\nMore.\n"),
    ],
)
def test_what_was_written_around_it_stays_in_lines_of_its_own(before, behind, left):
    block = instruction("docindex").replace("\n", "\r\n" if "\r" in before else "\n")

    assert without_rules(before + block + behind, "docindex") == left


@pytest.mark.parametrize("lost", ["begin", "end"])
def test_a_lost_mark_is_not_guessed(lost):
    broken = add("Ours.\n").replace(f"<!-- docindex: {lost} -->", "")

    for edit in (add, without_rules):
        with pytest.raises(TextError, match="once each"):
            edit(broken, "docindex")


def test_it_names_tools_that_there_are():
    named = {word for word in instruction("docindex").split("`")[1::2] if word.isidentifier()}

    assert named - {"docindex", "literal", "regex"} <= {name for name in vars(Tools) if not name.startswith("_")}
    assert {"search", "context", "graph"} <= named
