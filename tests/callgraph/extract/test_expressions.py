"""Source expressions become trees, as far as names can be resolved."""

import pytest

from docindex_dagster.callgraph.ir import (
    ANY,
    BLOCK,
    ROOT,
    THIS,
    UNKNOWN,
    Attribute,
    Call,
    CallbackArgument,
    Collection,
    Element,
    Expression,
    Function,
    Instance,
    Literal,
    Module,
    Name,
    NameOrCall,
    New,
    Record,
    TypeRef,
    Union,
    head,
    path,
)
from tests.callgraph.extract.reading import read, value

ORDER, ITEMS = Name("order"), path("order.items")


@pytest.mark.parametrize(
    ("language", "source", "expected"),
    [
        ("python", "x = order.items[0].total()", Call(Attribute(Element(ITEMS), "total"))),
        ("python", "x = order if paid else cart", Union((ORDER, Name("cart")))),
        ("python", "x = order or cart", Union((ORDER, Name("cart")))),
        ("python", "x = [order, cart, 1]", Collection((ORDER, Name("cart")))),
        ("python", "x = {'run': order}", Collection((ORDER,))),
        ("python", "x = sorted(items)", Name("items")),
        ("python", "x = 'text'", Literal("str")),
        ("python", "x = 1 + 2", UNKNOWN),
        ("javascript", "const x = new Order()", New(Name("Order"))),
        ("javascript", "const x = require('./lib/store')", Module("./lib/store")),
        ("javascript", "const x = {run: go, stop() {}}", Record((("run", Name("go")), ("stop", Function("stop"))))),
        ("javascript", "const x = order['total']", Attribute(ORDER, "total")),
        ("javascript", "const x = this.#order", Attribute(THIS, "#order")),
        ("typescript", "const x = order as Cart", Instance(TypeRef("Cart"))),
        ("java", "class A { void f() { var x = new ArrayList<Order>(); } }", None),
        ("ruby", "x = order", NameOrCall("order")),
        ("ruby", "x = @order", Attribute(THIS, "%order")),
        ("ruby", "x = order.method(:total)", Attribute(NameOrCall("order"), "total")),
        ("go", "package p\nfunc f() { x := <-orders }", Element(Name("orders"))),
        ("go", "package p\nfunc f() { x := new(Order) }", Instance(TypeRef("Order"))),
        ("rust", "fn f() { let x = Some(order); }", Collection((ORDER,))),
        ("rust", "fn f() { let x = vec![Order::new(1)]; }", Collection((Call(path("Order.new")),))),
        ("cpp", "void f() { auto x = order->items; }", Attribute(Element(ORDER), "items")),
        ("cpp", "void f() { auto x = ::order; }", Attribute(Name(ROOT), "order")),
        ("cpp", "void f() { auto x = std::make_unique<Order>(); }", None),
        ("php", "<?php $x = $order->items;", Attribute(Name("$order"), "$items")),
        ("php", "<?php $x = [$order, 'total'];", Attribute(Name("$order"), "total")),
        ("kotlin", "val x = order ?: cart", Union((ORDER, Name("cart")))),
        ("csharp", "class A { void F() { var x = (Order)cart; } }", Instance(TypeRef("Order"))),
    ],
)
def test_an_expression_is_what_it_is_made_of(language: str, source: str, expected: Expression | None):
    made = {
        "java": Instance(TypeRef("ArrayList", (TypeRef("Order"),))),
        "cpp": Instance(TypeRef("std.unique_ptr", (TypeRef("Order"),))),
    }

    assert value(language, source) is (made[language] if expected is None else expected)


def test_a_lambda_is_given_what_the_method_gives_it():
    found = read("java", "class A { void f() { orders.forEach(order -> order.pay()); } }")
    orders = Name("orders")
    argument = CallbackArgument(Attribute(orders, "forEach"), ANY, 1)

    assert found.assignments[0].target is ORDER
    assert found.assignments[0].value is Union((Element(orders), argument))


def test_a_block_is_given_what_the_method_yields():
    found = read("ruby", "orders.visit { |order| order.pay }")

    assert found.assignments[0].value is CallbackArgument(Attribute(NameOrCall("orders"), "visit"), BLOCK, 0)


def test_what_is_too_deep_begins_with_something_unknown():
    assert head(value("python", f"x = {'.'.join(['order'] * 20)}")) is ORDER
    assert head(value("python", f"x = {'.'.join(['order'] * 90)}")) is UNKNOWN


def test_what_is_too_large_is_unknown():
    assert value("python", f"x = [{', '.join(f'order.a{at}.b.c.d' for at in range(12))}]") is not UNKNOWN
    assert value("python", f"x = [{', '.join(f'order.a{at}.b.c.d.e.f' for at in range(12))}]") is UNKNOWN


def test_deep_expressions_end_nothing():
    depth = 20_000
    found = read("python", f"x = {'(' * depth}order{')' * depth}\ny = order")

    assert found.assignments[-1].value is ORDER
