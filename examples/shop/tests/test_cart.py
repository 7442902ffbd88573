from decimal import Decimal

from shop.cart import Cart, Item


def test_adding_an_item_twice_increases_its_quantity():
    cart = Cart()
    cart.add(Item("mug", Decimal(8)))
    cart.add(Item("mug", Decimal(8)))

    assert cart.total() == 16
