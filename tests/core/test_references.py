"""One parser reads what users type and what commands print."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docindex_dagster.core.references import Reference, parse

SOURCES = ("git/shop", "git/shop@dev", "library/with space", "library/guide", "git/guide")


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("src/cart.py", Reference("src/cart.py")),
        ("./src/../src/cart.py", Reference("src/cart.py")),
        (".github/ci.yml", Reference(".github/ci.yml")),
        ("src/cart.py:9", Reference("src/cart.py", lines=(9, 9))),
        ("src/cart.py:9:", Reference("src/cart.py", lines=(9, 9))),
        ("src/cart.py:9:5", Reference("src/cart.py", lines=(9, 9))),
        ("src/cart.py:9-12", Reference("src/cart.py", lines=(9, 12))),
        ("src/cart.py:12-9", Reference("src/cart.py", lines=(12, 9))),
        ("src/cart.py:9,12,30", Reference("src/cart.py", lines=(9, 9))),
        ("src/cart.py#L9", Reference("src/cart.py", lines=(9, 9))),
        ("src/cart.py#L9-L12", Reference("src/cart.py", lines=(9, 12))),
        ("src/cart.py#L9C2-L12C8", Reference("src/cart.py", lines=(9, 12))),
        ("README.md?plain=1#L9", Reference("README.md", lines=(9, 9))),
        ("git/shop src/cart.py", Reference("src/cart.py", "git/shop")),
        ("git/shop  src/cart.py:9", Reference("src/cart.py", "git/shop", (9, 9))),
        ("git/shop@dev  src/cart.py:9", Reference("src/cart.py", "git/shop@dev", (9, 9))),
        ("git/shop: src/cart.py", Reference("src/cart.py", "git/shop")),
        ("git/shop:src/cart.py", Reference("src/cart.py", "git/shop")),
        ("shop src/cart.py", Reference("src/cart.py", "git/shop")),
        ("library/with space a b.md:3", Reference("a b.md", "library/with space", (3, 3))),
        ("git/shop::src/cart.py::4", Reference("src/cart.py", "git/shop", chunk=4)),
        ("git/shop!src/cart.py::Cart.add", Reference("src/cart.py", "git/shop", symbol="Cart.add")),
        ("src/Cart.java::Cart.add~2", Reference("src/Cart.java", symbol="Cart.add")),
        ("docs/c#.md#Guide > C# basics", Reference("docs/c#.md", symbol="Guide > C# basics")),
        ("0931b708a5", Reference(id="0931b708a5")),
        ("git/shop  commit 0931B708A5", Reference(source="git/shop", id="0931b708a5")),
        ("7dd2310d176f6394759185027bea96b2", Reference(id="7dd2310d176f6394759185027bea96b2")),
        ("Cart.add", Reference(symbol="Cart.add")),
        ("Cart.add()", Reference(symbol="Cart.add")),
        ("Cart::add", Reference(symbol="Cart.add")),
        ("Cart#add", Reference(symbol="Cart.add")),
        ("cart->add", Reference(symbol="cart.add")),
        ("cart.add(x, y)", Reference(symbol="cart.add")),
        ("empty?", Reference(symbol="empty?")),
        ("git/shop Cart.add", Reference(symbol="Cart.add", source="git/shop")),
        (r"src\shop\cart.py:9", Reference("src/shop/cart.py", lines=(9, 9))),
        (r"..\cart.py", Reference("../cart.py")),
    ],
)
def test_each_form_that_commands_print_is_among_the_readings(text, meant):
    assert meant in parse(text, SOURCES)


@pytest.mark.parametrize("text", ["a:9", "a b.md", "git/shop x", r"a\b.py", "c#.md", "0931b708a5", "Cart.add()"])
def test_the_whole_text_as_a_path_comes_first(text):
    assert parse(text, SOURCES)[0] == Reference(text)


def test_a_name_that_two_sources_share_names_none_of_them():
    assert not any(reading.source for reading in parse("guide a.md", SOURCES))


@given(st.text(st.sampled_from("ab/\\:#!.~L0123456789-,() \0\ud800é"), max_size=200))
def test_any_text_has_a_bounded_number_of_readings(text):
    assert 0 < len(parse(text, SOURCES)) < 200


def test_what_is_longer_than_any_path_is_read_as_it_is():
    assert parse("a::" * 100_000, SOURCES) == (Reference("a::" * 100_000),)
