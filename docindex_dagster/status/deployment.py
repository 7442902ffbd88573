"""What is wrong with the file of Dagster's instance, `dagster.yaml`, before anything fails by it."""

import os
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

from docindex_dagster.core.installation import needs_extra

_STORAGES = ("run_storage", "event_log_storage", "schedule_storage")
_SECTIONS = (
    *(("run_coordinator",), ("storage",), ("storage", "postgres"), ("storage", "postgres", "postgres_db")),
    *((storage, *below) for storage in _STORAGES for below in ((), ("config",), ("config", "postgres_db"))),
)
"""Where settings stand that are read here."""
_DRIVER = "postgresql+psycopg2"
_AMBIGUOUS = ("postgresql", "postgres")
_FIRST_WITH_ANOTHER = (2, 1)  # SQLAlchemy, which since then takes such a URL for psycopg 3


def problems(config: Mapping[str, Any], *, is_shared: bool) -> list[str]:
    """What is wrong, a line each, and what to do.

    Args:
        config: what the file says.
        is_shared: the settings have a `storage.url`, so that machines share the stores.
    """
    if shapes := list(_of_shapes(config)):
        return shapes
    found = list(_of_drivers(config))
    if not is_shared:
        return found
    if not any(_postgres(config)):
        found.append(
            "storage.url is set, and Dagster's runs are in no Postgres, so each machine has a record and locks of its "
            "own: write `storage: {postgres: …}`, see docs/scale.md"
        )
    coordinator = str(config.get("run_coordinator", {}).get("class", "QueuedRunCoordinator"))
    if "Queued" not in coordinator:
        found.append(f"run_coordinator is {coordinator}, which starts runs without a queue: leave it out")
    lacking = [module for module in ("obstore", "dagster_postgres", "psycopg2") if find_spec(module) is None]
    if lacking:
        found.append(needs_extra(f"storage.url ({', '.join(lacking)})", "scale"))
    return found


def _of_shapes(config: Mapping[str, Any]) -> Iterator[str]:
    """Sections that hold nothing, or one value in place of settings: Dagster reads no such file."""
    for path in _SECTIONS:
        values: Any = config
        for name in path:
            values = values[name] if isinstance(values, Mapping) and name in values else {}
        if not isinstance(values, Mapping):
            yield f"{'.'.join(path)} holds no settings: write them below it, or take it out"


def _of_drivers(config: Mapping[str, Any]) -> Iterator[str]:
    if not _takes_another_driver():
        return
    for where, values in _postgres(config):
        scheme = _scheme(values)
        if scheme in _AMBIGUOUS:
            remedy = f"`{_DRIVER}://…`" if "postgres_url" in values else f"`scheme: {_DRIVER}` in `postgres_db`"
            yield (
                f"{where}: SQLAlchemy {version('sqlalchemy')} takes {scheme}:// for a driver that is not installed "
                f"(No module named 'psycopg'): write {remedy}"
            )


def _takes_another_driver() -> bool:
    try:
        major, minor, *_ = version("sqlalchemy").split(".")
    except PackageNotFoundError:
        return False
    return (int(major), int(minor)) >= _FIRST_WITH_ANOTHER and find_spec("psycopg") is None


def _postgres(config: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The settings of each storage that is in Postgres, and where they stand."""
    storage = config.get("storage", {})
    if "postgres" in storage:
        yield "storage.postgres", storage["postgres"]
    for name in _STORAGES:
        one = config.get(name, {})
        if str(one.get("module", "")).startswith("dagster_postgres"):
            yield f"{name}.config", one.get("config", {})


def _scheme(values: Mapping[str, Any]) -> str:
    """The scheme of the URL that the settings give; empty where that cannot be seen from here."""
    if "postgres_url" in values:
        return _text(values["postgres_url"]).partition("://")[0]
    return _text(values.get("postgres_db", {}).get("scheme", _AMBIGUOUS[0]))


def _text(value: Any) -> str:
    """A text, which may stand in a variable of the environment."""
    return os.environ.get(str(value.get("env")), "") if isinstance(value, Mapping) else str(value)
