"""The time at which a daemon of a test indexes everything: none that comes while the test runs."""

from datetime import UTC, datetime, timedelta

_AWAY = timedelta(hours=12)


def distant_night(now: datetime | None = None) -> dict[str, str]:
    """Variables of the environment that put the nightly run as far from now as a day allows.

    Else a test that looks at who asked for the runs would fail where it happens to run at night.
    """
    at = (now or datetime.now(UTC)) + _AWAY
    return {
        "DOCINDEX_SCHEDULE__NIGHTLY": f"{at.minute} {at.hour} * * *",
        "DOCINDEX_SCHEDULE__TIMEZONE": "UTC",
    }
