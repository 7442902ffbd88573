"""Sensors and their intervals. A tick only lists and stats files, and never reads them."""

from typing import Self

from pydantic import BaseModel, ConfigDict, ValidationError

# Seconds between ticks. Dagster checks every 5 s which sensors are due, so multiples of 5 without a larger common
# divisor rarely coincide.
SOURCES_INTERVAL_S, LIBRARIES_INTERVAL_S, REPOSITORIES_INTERVAL_S, MEMORY_INTERVAL_S = 25, 30, 35, 55
STORES_INTERVAL_S = 65


class CursorPart(BaseModel):
    """Part of a sensor cursor. All fields have defaults, so that an empty cursor is valid."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    def of(cls, cursor: str | None) -> Self:
        """Parse a cursor; return a fresh one if a user cleared or corrupted it."""
        try:
            return cls.model_validate_json(cursor or "{}")
        except ValidationError:
            return cls()
