"""Connections of `docindex serve`, with timeouts for sending a request.

uvicorn waits for requests indefinitely, so clients that send half a request could exhaust the file descriptors.
"""

import asyncio
import ipaddress
from functools import lru_cache
from typing import TYPE_CHECKING

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    from collections.abc import Hashable

HEADERS_S = 10.0
"""Time limit for the headers of a request, in seconds."""
BODY_S = 30.0
"""Time limit for the body of a request, in seconds."""
MOST_WAITING = 128
"""Maximum number of connections per client with an incomplete request; one more closes the oldest."""


class Connection(H11Protocol):
    """Connection that is closed if its client takes too long to send a request."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request. Close the client's oldest waiting connection if it has too many."""
        super().connection_made(transport)
        self.sender = sender_of(self.client[0] if self.client else "")
        self.waits_since = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._wait(HEADERS_S)
        others = [other for other in self.connections if isinstance(other, Connection) and other.sender == self.sender]
        waiting = [other for other in others if other.is_waiting]
        if len(waiting) > MOST_WAITING:
            min(waiting, key=lambda other: other.waits_since).give_up()

    @property
    def is_waiting(self) -> bool:
        """Whether the client has not yet sent a complete request."""
        return self._timer is not None

    def give_up(self) -> None:
        """Close the connection."""
        self._stop_waiting()
        self.transport.abort()  # `close` would wait for a client that does not read

    def data_received(self, data: bytes) -> None:
        """Read a part of a request."""
        had_headers = self._is_answering
        super().data_received(data)
        if not self._is_answering:
            return
        if not self.cycle.more_body:
            self._stop_waiting()
        elif not had_headers:
            self._wait(BODY_S)

    def on_response_complete(self) -> None:
        """Wait for the next request, unless it is already there."""
        super().on_response_complete()
        if not self._is_answering:
            self._wait(HEADERS_S)
        elif not self.cycle.more_body:
            self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        super().connection_lost(exc)
        self._stop_waiting()

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _wait(self, longest_s: float) -> None:
        self._stop_waiting()
        self.waits_since = self.loop.time()
        self._timer = self.loop.call_later(longest_s, self.give_up)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


@lru_cache(maxsize=1024)
def sender_of(host: str) -> "Hashable":
    """Return what identifies a client: an IPv4 address, an IPv6 /64 network, or "loopback" for this machine."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv6Address):
        address = address.ipv4_mapped or address
    if address.is_loopback:
        return "loopback"
    return address if address.version == 4 else ipaddress.ip_network((address, 64), strict=False)  # noqa: PLR2004
