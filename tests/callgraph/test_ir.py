"""Equal expressions are the same object, so that cached answers about them are found."""

from weakref import ref

import pytest

from docindex_dagster.callgraph.extract.renaming import Renaming
from docindex_dagster.callgraph.ir import (
    THIS,
    UNKNOWN,
    Attribute,
    Call,
    CallbackArgument,
    Element,
    Instance,
    Name,
    NameOrCall,
    New,
    Record,
    TypeRef,
    Union,
    path,
    path_of,
    walk,
)

ORDER = Name("order")


@pytest.mark.parametrize(
    "made",
    [
        lambda: Element(Attribute(Name("order"), "items")),
        lambda: New(Name("Order")),
        lambda: Instance(TypeRef("list", (TypeRef("Order"), TypeRef("map", (TypeRef("str"),))))),
        lambda: Call(Attribute(Union((Name("order"), Name("cart"))), "total")),
        lambda: CallbackArgument(Name("take"), 0, 1),
        lambda: NameOrCall("total"),
        lambda: Record((("run", Name("go")), ("", Name("all")))),
    ],
)
def test_equal_expressions_are_one_object(made):
    assert made() is made()


def test_an_expression_that_is_held_by_none_is_forgotten_and_can_be_made_again():
    held = ref(Attribute(Name("a name of this test"), "total"))

    assert held() is None
    assert Attribute(Name("a name of this test"), "total") == path("a name of this test.total")


def test_what_is_left_out_is_what_it_is_by_default():
    assert Name("order", "") is ORDER
    assert TypeRef("Order", ()) is TypeRef("Order")


def test_a_name_of_which_the_sort_is_given_is_another_expression():
    assert Name("order", "type") is not ORDER
    assert Name("order", "type") is Name("order", "type")


def test_names_are_replaced_in_all_parts_and_nothing_else_is():
    before = Call(Attribute(Union((Name("self"), ORDER)), "self"))

    after = Renaming({Name("self"): THIS})[before]

    assert after is Call(Attribute(Union((THIS, ORDER)), "self"))
    assert THIS in walk(after)


def test_what_stands_beside_expressions_stays():
    before = Record((("self", CallbackArgument(ORDER, 2, 1)),))

    after = Renaming({ORDER: THIS})[before]

    assert after is Record((("self", CallbackArgument(THIS, 2, 1)),))


def test_a_path_is_written_as_it_is_read():
    assert path_of(path("shop.cart.Order")) == "shop.cart.Order"
    assert path_of(Call(ORDER)) == ""


def test_a_path_that_is_too_long_is_not_followed():
    assert path(".".join("a" * 64)) is not UNKNOWN
    assert path(".".join("a" * 100_000)) is UNKNOWN
