"""Sets of values: no duplicates, the strongest step for each value, and a bounded size."""

from docindex_dagster.callgraph.ir import Name, Record
from docindex_dagster.callgraph.resolver.values import (
    MOST_VALUES,
    Resolution,
    Value,
    collection,
    distinct,
    external_object,
)

ORDER, CART = Value("class", "shop.py", "Order"), Value("class", "shop.py", "Cart")


def test_a_value_that_is_found_twice_counts_by_its_strongest_step():
    assert distinct([ORDER.found(Resolution.ARGUMENT), CART, ORDER]) == (ORDER, CART)
    assert distinct([ORDER, CART, ORDER.found(Resolution.ARGUMENT)]) == (ORDER, CART)


def test_a_step_makes_a_value_no_stronger():
    assert ORDER.found(Resolution.ARGUMENT).found(Resolution.FILE).resolution is Resolution.ARGUMENT


def test_collections_are_one_that_holds_what_each_of_them_does():
    assert distinct([collection((ORDER,)), collection((CART,), Resolution.ELEMENT)]) == (collection((ORDER, CART)),)


def test_what_differs_by_what_it_holds_or_is_written_with_is_another_value():
    records = [Value("record", "shop.py", "", record=Record((("run", Name(name)),))) for name in ("go", "stop")]
    objects = [external_object("list", held=(held,)) for held in (ORDER, CART)]

    assert distinct([*records, *objects]) == (*records, *objects)


def test_of_very_many_values_the_first_are_taken():
    several = [Value("class", "shop.py", str(number)) for number in range(50)]

    assert distinct(several) == tuple(several[:MOST_VALUES])
