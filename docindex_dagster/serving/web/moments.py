"""Moments as people say them."""

from datetime import UTC, datetime

_STEPS = ((60, 1, "s"), (3600, 60, "min"), (86_400, 3600, "h"), (30 * 86_400, 86_400, "days"))


def ago(when: datetime | str | None) -> str:
    """How long ago a moment was, as `5 min ago`, and its date where that is a month; empty where there is none."""
    at = _read(when)
    if at is None:
        return ""
    seconds = max(0, int((datetime.now(UTC) - at).total_seconds()))
    for below, unit, name in _STEPS:
        if seconds < below:
            count = seconds // unit
            return f"{count} {name.removesuffix('s') if name == 'days' and count == 1 else name} ago"
    return f"{at:%Y-%m-%d}"


def moment(when: datetime | str | None) -> str:
    """A moment with its date, to the minute."""
    at = _read(when)
    return f"{at:%Y-%m-%d %H:%M} UTC" if at else ""


def machine_time(when: datetime | str | None) -> str:
    """A moment as the element `time` wants it."""
    at = _read(when)
    return at.isoformat(timespec="seconds") if at else ""


def seconds_between(start: str | None, end: str | None) -> float | None:
    """How long something took, or takes so far; None where it has not begun."""
    begun = _read(start)
    return None if begun is None else ((_read(end) or datetime.now(UTC)) - begun).total_seconds()


def _read(when: datetime | str | None) -> datetime | None:
    if not when:
        return None
    at = datetime.fromisoformat(when) if isinstance(when, str) else when
    return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
