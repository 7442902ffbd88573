"""Expressions are taken apart, and those that are equal are one object, so that answers about them are found again."""

import pytest

from docindex_dagster.graph.notation import Called, Either, Given, Item, Made, Member, Name, Typed, parse

ORDER = Name("order")


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("order", ORDER),
        ("order.items[]", Item(Member(ORDER, "items"))),
        ("Order@()", Called(Made(Name("Order")))),
        (":list<Order>", Typed("list<Order>")),
        ("(order|cart).total()", Called(Member(Either((ORDER, Name("cart"))), "total"))),
        ("take^01", Given(Name("take"), 0, 1)),
    ],
)
def test_equal_expressions_are_one_object(text, expression):
    assert parse(text) is expression


def test_a_name_of_which_the_sort_is_given_is_another_expression():
    assert Name("order", "type") is not ORDER
    assert Name("order", "type") is Name("order", "type")
