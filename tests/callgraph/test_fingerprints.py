"""Fingerprints are equal for equal content, in every process and at every position."""

from docindex_dagster.callgraph.exported_symbols import fingerprint
from docindex_dagster.callgraph.ir import (
    Argument,
    Attribute,
    Call,
    CallSite,
    Element,
    Expression,
    Instance,
    Name,
    TypeRef,
)

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
    assert fingerprint(Argument(ORDER)) != fingerprint(Argument(ORDER, "", True))


def test_a_statement_has_the_same_fingerprint_wherever_it_stands():
    first, same, other = (
        CallSite("call", scope, Call(ORDER), (Argument(ORDER),), line, line)
        for scope, line in (("Cart", 1), ("Cart", 2), ("", 1))
    )

    assert fingerprint([first]) == fingerprint([same]) != fingerprint([other])


def test_a_fingerprint_is_the_same_in_each_process():
    assert fingerprint(Call(Attribute(ORDER, "total"))) == 3479567479
