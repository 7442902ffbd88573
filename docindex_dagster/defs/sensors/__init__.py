"""The sensors: what they notice, and when they ask for a run. A tick lists and stats, and reads no file."""

from typing import Self

from pydantic import BaseModel, ConfigDict, ValidationError

# How often Dagster asks each sensor, in seconds. It looks every 5 s which ones are due: of multiples of that
# without a common divisor, two seldom fall together.
SOURCES_INTERVAL_S, LIBRARIES_INTERVAL_S, REPOSITORIES_INTERVAL_S, MEMORY_INTERVAL_S = 25, 30, 35, 55
STORES_INTERVAL_S = 65


class Remembered(BaseModel):
    """A part of a cursor. Each field has a default, so that an empty cursor is one."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    def of(cls, cursor: str | None) -> Self:
        """What a cursor holds; a fresh one where a user cleared or broke it."""
        try:
            return cls.model_validate_json(cursor or "{}")
        except ValidationError:
            return cls()
