"""Card payments."""

import time
from decimal import Decimal


class CardDeclinedError(Exception):
    """The bank refused the charge."""


class PaymentGateway:
    """Client of the payment provider."""

    def charge(self, order: str, amount: Decimal) -> str:
        """Charge the card of an order and return the transaction's ID.

        Raises:
            CardDeclinedError: the bank refused the charge.
            TimeoutError: the provider did not answer.
        """
        if amount <= 0:
            raise CardDeclinedError(f"cannot charge {amount} for order {order}")
        return f"tx-{order}"


def charge_with_retry(gateway: PaymentGateway, order: str, amount: Decimal, attempts: int = 3) -> str:
    """Charge a card, and retry with exponential backoff when the provider times out."""
    for attempt in range(attempts):
        try:
            return gateway.charge(order, amount)
        except TimeoutError:
            if attempt == attempts - 1:
                raise
            time.sleep(2**attempt)
    raise ValueError("attempts must be at least 1")
