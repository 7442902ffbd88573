"""Checkout: turn a cart into a paid order."""

from shop.cart import Cart
from shop.payments import PaymentGateway, charge_with_retry


class EmptyCartError(Exception):
    """The cart has no items."""


def place_order(cart: Cart, order: str, gateway: PaymentGateway) -> str:
    """Charge the total of a cart and return the transaction's ID."""
    if not cart.items:
        raise EmptyCartError("add an item before you check out")
    return charge_with_retry(gateway, order, cart.total())
