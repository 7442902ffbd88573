"""Checks of `dagster.yaml`, the Dagster instance's file, before its problems cause failures."""

import os
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

from docindex_dagster.core.installation import missing_extra_message

_STORAGES = ("run_storage", "event_log_storage", "schedule_storage")
_SECTIONS = (
    *(("run_coordinator",), ("storage",), ("storage", "postgres"), ("storage", "postgres", "postgres_db")),
    *((storage, *below) for storage in _STORAGES for below in ((), ("config",), ("config", "postgres_db"))),
)
"""Paths of the settings that are read here."""
_DRIVER = "postgresql+psycopg2"
_AMBIGUOUS = ("postgresql", "postgres")
_FIRST_WITH_PSYCOPG_3 = (2, 1)  # the first SQLAlchemy version that uses psycopg 3 for such URLs


def problems(config: Mapping[str, Any], *, is_shared: bool) -> list[str]:
    """Return the problems and how to fix them, one per line.

    Args:
        config: the contents of the file.
        is_shared: whether the settings have a `storage.url`, so that machines share the stores.
    """
    if shapes := list(_shape_problems(config)):
        return shapes
    found = list(_driver_problems(config))
    if not is_shared:
        return found
    if not any(_postgres(config)):
        found.append(
            "storage.url is set, but Dagster does not store its runs in Postgres, so each machine has its own record "
            "and locks: set `storage: {postgres: …}`, see docs/explanation/several-machines.md"
        )
    coordinator = str(config.get("run_coordinator", {}).get("class", "QueuedRunCoordinator"))
    if "Queued" not in coordinator:
        found.append(f"run_coordinator is {coordinator}, which starts runs without a queue: remove it")
    lacking = [module for module in ("obstore", "dagster_postgres", "psycopg2") if find_spec(module) is None]
    if lacking:
        found.append(missing_extra_message(f"storage.url ({', '.join(lacking)})", "scale"))
    return found


def _shape_problems(config: Mapping[str, Any]) -> Iterator[str]:
    """Yield sections that are empty or have a scalar in place of settings, since Dagster cannot read such a file."""
    for path in _SECTIONS:
        values: Any = config
        for name in path:
            values = values[name] if isinstance(values, Mapping) and name in values else {}
        if not isinstance(values, Mapping):
            yield f"expected settings below {'.'.join(path)}: add them, or remove it"


def _driver_problems(config: Mapping[str, Any]) -> Iterator[str]:
    if not _needs_explicit_driver():
        return
    for where, values in _postgres(config):
        scheme = _scheme(values)
        if scheme in _AMBIGUOUS:
            remedy = f"`{_DRIVER}://…`" if "postgres_url" in values else f"`scheme: {_DRIVER}` in `postgres_db`"
            yield (
                f"{where}: SQLAlchemy {version('sqlalchemy')} uses a driver for {scheme}:// that is not installed "
                f"(No module named 'psycopg'): set {remedy}"
            )


def _needs_explicit_driver() -> bool:
    try:
        major, minor, *_ = version("sqlalchemy").split(".")
    except PackageNotFoundError:
        return False
    return (int(major), int(minor)) >= _FIRST_WITH_PSYCOPG_3 and find_spec("psycopg") is None


def _postgres(config: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the settings of each storage that uses Postgres, and their path."""
    storage = config.get("storage", {})
    if "postgres" in storage:
        yield "storage.postgres", storage["postgres"]
    for name in _STORAGES:
        one = config.get(name, {})
        if str(one.get("module", "")).startswith("dagster_postgres"):
            yield f"{name}.config", one.get("config", {})


def _scheme(values: Mapping[str, Any]) -> str:
    """Return the scheme of the configured URL; empty if it cannot be determined here."""
    if "postgres_url" in values:
        return _text(values["postgres_url"]).partition("://")[0]
    return _text(values.get("postgres_db", {}).get("scheme", _AMBIGUOUS[0]))


def _text(value: Any) -> str:
    """Return a string, which may come from an environment variable."""
    return os.environ.get(str(value.get("env")), "") if isinstance(value, Mapping) else str(value)
