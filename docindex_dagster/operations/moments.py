"""Dates and moments that are given in words: UTC where they name no zone."""

import re
from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def _no_number(given: object) -> object:
    """Seconds since 1970 are no date, though pydantic would read them as one."""
    is_number = isinstance(given, int | float) or (isinstance(given, str) and "-" not in given)
    if is_number:
        raise ValueError("should be a date or a moment, as 2026-01-31 or 2026-01-31T12:00:00Z")
    return given


def _in_utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _whole_day(given: object) -> object:
    """A date without a time is the last moment of its day."""
    return f"{given}T23:59:59.999999" if isinstance(given, str) and _DATE.fullmatch(given) else given


Moment = Annotated[datetime, BeforeValidator(_no_number), AfterValidator(_in_utc)]
LastMoment = Annotated[datetime, BeforeValidator(_whole_day), BeforeValidator(_no_number), AfterValidator(_in_utc)]
"""The end of what counts: of a date, of its whole day."""
