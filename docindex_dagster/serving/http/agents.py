"""The agents' tools over HTTP: the Model Context Protocol at one address, without sessions."""

from typing import TYPE_CHECKING

import anyio
from starlette.concurrency import run_in_threadpool

from docindex_dagster.serving.collecting_tools import CollectingTools
from docindex_dagster.serving.mcp_server import server
from docindex_dagster.serving.memory_tools import MemoryTools
from docindex_dagster.serving.tools import Tools

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer
    from starlette.types import ASGIApp, Receive, Scope, Send

PATH = "/mcp"


class Agents:
    """Answers agents. The protocol's library takes half a second to load, which no other request waits for."""

    def __init__(
        self, tools: Tools, memory: MemoryTools | None = None, collecting: CollectingTools | None = None
    ) -> None:
        """Offer some tools."""
        self._tools = tools
        self._memory = memory
        self._collecting = collecting
        self._app: ASGIApp | None = None
        self._is_there = anyio.Event()

    async def live(self) -> None:
        """Load what answering needs, and keep it until the task is cancelled."""
        made = await run_in_threadpool(server, self._tools, self._memory, self._collecting)
        app = await run_in_threadpool(_app_of, made)
        async with made.session_manager.run():
            self._app = app
            self._is_there.set()
            await anyio.sleep_forever()

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Answer a request, once that is possible."""
        while self._app is None:
            await self._is_there.wait()
        await self._app(scope, receive, send)


def _app_of(made: "MCPServer") -> "ASGIApp":
    """The server as an application; the guard knows who may call.

    Without sessions nothing is ever sent of the server's own accord, so a stream for it would only be held open.
    """
    from mcp.server.transport_security import TransportSecuritySettings

    unguarded = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    return made.streamable_http_app(
        stateless_http=True, json_response=True, transport_security=unguarded, streamable_http_path=PATH
    )
