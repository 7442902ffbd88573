"""Shopping cart."""

from dataclasses import dataclass, field
from decimal import Decimal


@dataclass
class Item:
    """A product in a cart, with its price in euros."""

    sku: str
    price: Decimal
    quantity: int = 1


@dataclass
class Cart:
    """The items that a customer wants to buy."""

    items: list[Item] = field(default_factory=list)

    def add(self, item: Item) -> None:
        """Add an item, or increase its quantity if it is already in the cart."""
        for existing in self.items:
            if existing.sku == item.sku:
                existing.quantity += item.quantity
                return
        self.items.append(item)

    def total(self) -> Decimal:
        """Return the sum of all prices, in euros."""
        return sum((item.price * item.quantity for item in self.items), Decimal(0))
