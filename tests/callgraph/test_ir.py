"""Expressions that are equal are one object, so that answers about them are found again."""

import pytest

from docindex_dagster.callgraph.ir import (
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


def test_what_is_left_out_is_what_it_is_by_default():
    assert Name("order", "") is ORDER
    assert TypeRef("Order", ()) is TypeRef("Order")


def test_a_name_of_which_the_sort_is_given_is_another_expression():
    assert Name("order", "type") is not ORDER
    assert Name("order", "type") is Name("order", "type")


def test_a_path_is_written_as_it_is_read():
    assert path_of(path("shop.cart.Order")) == "shop.cart.Order"
    assert path_of(Call(ORDER)) == ""
