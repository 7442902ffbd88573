"""Fingerprints: equal for equal content in all processes, and in bounded memory."""

from docindex_dagster.callgraph import fingerprints
from docindex_dagster.callgraph.fingerprints import fingerprint, text_of
from docindex_dagster.callgraph.ir import Argument, Attribute, Call, Element, Expression, Instance, Name, TypeRef

ORDER = Name("order")


def test_what_differs_has_another_fingerprint():
    differing: list[Expression] = [
        ORDER,
        Name("cart"),
        Name("order", "type"),
        Call(ORDER),
        Element(ORDER),
        Instance(TypeRef("order")),
    ]

    assert len({fingerprint(one) for one in differing}) == len(differing)
    assert text_of(Argument(ORDER)) != text_of(Argument(ORDER, "", True))


def test_a_fingerprint_is_the_same_in_each_process():
    assert fingerprint(Call(Attribute(ORDER, "total"))) == 2130830015


def test_those_that_are_remembered_are_not_too_many(monkeypatch):
    monkeypatch.setattr(fingerprints, "_MOST_KNOWN", 10)
    monkeypatch.setattr(fingerprints, "_KNOWN", {})
    before = [fingerprint(Name(f"name{number}")) for number in range(50)]

    assert [fingerprint(Name(f"name{number}")) for number in range(50)] == before
    assert len(fingerprints._KNOWN) <= 11
