"""Dates and moments that are given in words: UTC where they name no zone."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator


def _no_number(given: object) -> object:
    """Seconds since 1970 are no date, though pydantic would read them as one."""
    is_number = isinstance(given, int | float) or (isinstance(given, str) and "-" not in given)
    if is_number:
        raise ValueError("should be a date or a moment, as 2026-01-31 or 2026-01-31T12:00:00Z")
    return given


def _in_utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


Moment = Annotated[datetime, BeforeValidator(_no_number), AfterValidator(_in_utc)]
