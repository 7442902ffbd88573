"""The log of `docindex serve`: a thread formats and writes it, so that a traceback delays no request."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from logging.handlers import QueueHandler, QueueListener
from queue import SimpleQueue


class _Unformatted(QueueHandler):
    """Hands records over as they are."""

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        """Return the record; the base class would format it here, in the event loop."""
        return record


@contextmanager
def writing_logs() -> Iterator[None]:
    """Write what is logged in the block to standard error.

    The protocol's library for agents would else install a handler that takes seconds to draw a traceback.
    """
    records: SimpleQueue[logging.LogRecord] = SimpleQueue()
    writer = logging.StreamHandler()
    writer.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    handler, listener = _Unformatted(records), QueueListener(records, writer)
    root = logging.getLogger()
    root.addHandler(handler)
    listener.start()
    try:
        yield
    finally:
        root.removeHandler(handler)
        listener.stop()
