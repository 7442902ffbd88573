"""A nightly indexing time that never falls within a test run."""

from datetime import UTC, datetime, timedelta

_AWAY = timedelta(hours=12)


def distant_night(now: datetime | None = None) -> dict[str, str]:
    """Return environment variables that move the nightly run as far from now as possible.

    Tests that check what triggered a run would otherwise fail at night.
    """
    at = (now or datetime.now(UTC)) + _AWAY
    return {
        "DOCINDEX_SCHEDULE__NIGHTLY": f"{at.minute} {at.hour} * * *",
        "DOCINDEX_SCHEDULE__TIMEZONE": "UTC",
    }
