"""Connections to a database server: Dagster makes one for each statement, some 400 in a run, unless it is asked not to.

A few are held instead, as its web server does. SQLite's files know nothing of this: `storage` has theirs.
"""

import dagster as dg

_STATEMENT_TIMEOUT_MS = 10 * 60 * 1000  # deleting a run with many events takes long
_LONGEST_S = 60 * 60
_MORE = 4  # than one a storage, where threads write at once


def hold(instance: dg.DagsterInstance) -> None:
    """Let an instance hold the connections that it made until it is closed."""
    instance.optimize_for_webserver(_STATEMENT_TIMEOUT_MS, _LONGEST_S, _MORE)
