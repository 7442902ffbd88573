"""Connections to a database server: Dagster makes one for each statement, some 400 in a run, unless it is asked not to.

A few are held instead, as its web server does.
"""

from typing import Any

import dagster as dg

_STATEMENT_TIMEOUT_MS = 10 * 60 * 1000  # deleting a run with many events takes long
_LONGEST_S = 60 * 60
_MORE = 4  # than one a storage, where threads write at once


def hold(instance: dg.DagsterInstance) -> None:
    """Let an instance hold the connections that it made until it is closed, or the server ends them."""
    instance.optimize_for_webserver(_STATEMENT_TIMEOUT_MS, _LONGEST_S, _MORE)
    for storage in (instance.run_storage, instance.event_log_storage, instance.schedule_storage):
        if getattr(storage, "postgres_url", None) is not None:
            _replace_ended(storage._engine)  # type: ignore[union-attr]  # noqa: SLF001 Dagster sets no `pool_pre_ping`


def _replace_ended(engine: Any) -> None:
    """Let each connection be tried before it is used: those that were held over a restart of the server are ended."""
    from sqlalchemy import event
    from sqlalchemy.exc import DisconnectionError

    def check(connection: Any, *_: object) -> None:
        try:
            engine.dialect.do_ping(connection)
        except engine.dialect.dbapi.Error as error:
            raise DisconnectionError from error

    event.listen(engine, "checkout", check)
