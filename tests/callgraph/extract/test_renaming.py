"""Renaming covers every part of an expression or statement."""

from docindex_dagster.callgraph.extract.renaming import NamesIn, Renaming, renamed
from docindex_dagster.callgraph.ir import (
    FILE,
    THIS,
    Argument,
    Attribute,
    Call,
    CallSite,
    Name,
    Return,
    Union,
)

ORDER, SELF = Name("order"), Name("self")


def test_a_statement_stays_where_it_is():
    before = CallSite("call", "self", Attribute(SELF, "pay"), (Argument(SELF, "self"),), 3, 40)

    assert renamed(before, Renaming({SELF: THIS})) == CallSite(
        "call", "self", Attribute(THIS, "pay"), (Argument(THIS, "self"),), 3, 40
    )
    assert renamed(Return(FILE, SELF), Renaming({SELF: THIS})) == Return(FILE, THIS)


def test_names_are_found_in_all_parts_as_often_as_they_stand_there():
    names_in = NamesIn({"order"})

    assert names_in[Call(Attribute(Union((ORDER, SELF, ORDER)), "order"))] == ("order", "order")
    assert names_in[SELF] == ()
