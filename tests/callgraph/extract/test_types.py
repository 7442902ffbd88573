"""Declared types are read in the syntax of each language."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docindex_dagster.callgraph.extract.types import declared_name, declared_type
from docindex_dagster.callgraph.ir import TypeRef

ORDER = TypeRef("Order")
ORDERS = TypeRef("Array", (ORDER,))


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("Order", ORDER),
        ("const Order&", ORDER),
        ("Optional[Order]", TypeRef("Optional", (ORDER,))),
        ("Order | None", ORDER),
        ("Order?", ORDER),
        (": Order", ORDER),
        ("-> Order", ORDER),
        ("&'a mut Order", ORDER),
        ("shop::cart::Order", TypeRef("shop.cart.Order")),
        (r"Shop\Order", TypeRef("Shop.Order")),
        (r"\Shop\Order", TypeRef(r"\.Shop.Order")),
        ("Order[]", ORDERS),
        ("[]*Order", ORDERS),
        ("[Order; 4]", ORDERS),
        ("map[string]Order", TypeRef("map", (TypeRef("string"), ORDER))),
        ("Map<String, List<Order>>", TypeRef("Map", (TypeRef("String"), TypeRef("List", (ORDER,))))),
        ("<-chan Order", TypeRef("chan", (ORDER,))),
        ("(Order, error)", TypeRef("tuple", (ORDER, TypeRef("error")))),
        ("(a, b Order, err error)", TypeRef("tuple", (ORDER, ORDER, TypeRef("error")))),
        ("func(int) Order", TypeRef("func", (ORDER,))),
        ("(id: number) => Order", TypeRef("func", (ORDER,))),
        ("Cart.(Order) -> Unit", TypeRef("fun", (TypeRef("Cart"), ORDER))),
        ("unsigned long", TypeRef("long")),
        ("Box<dyn Store + Send>", TypeRef("Box", (TypeRef("Store"),))),
        ("Vec<_>", TypeRef("Vec", (TypeRef("_"),))),
        ("Result<(), Order>", TypeRef("Result", (TypeRef("?"), ORDER))),
    ],
)
def test_a_type_is_its_name_and_its_arguments(written, expected):
    assert declared_type(written) is expected


@pytest.mark.parametrize("written", ["", "None", "void", "var", "auto", "()", "12", "Order" * 100])
def test_what_names_no_type_is_none(written):
    assert declared_type(written) is None


def test_the_name_alone_has_no_arguments():
    assert declared_name("List<Order>") == "List"
    assert not declared_name("void")


@given(st.text("Aab<>[](){},.:;|&*?'\" -=", max_size=60))
def test_any_text_is_a_type_or_none(written):
    found = declared_type(written)

    assert found is None or (found.name and found is TypeRef(found.name, found.arguments))
