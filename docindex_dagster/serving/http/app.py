"""The server as one ASGI application: the API, agents' tools over HTTP, and the page, behind the guard."""

import json
import logging
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, contextmanager, suppress
from logging.handlers import QueueHandler, QueueListener
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from fastapi import APIRouter, FastAPI
from fastapi.telemetry import TelemetryConfig
from pydantic import TypeAdapter
from starlette.concurrency import run_in_threadpool
from starlette.routing import Route

from docindex_dagster import __version__
from docindex_dagster.serving.http import (
    ask,
    collected_questions,
    completions,
    conversations,
    files,
    health,
    jobs,
    memory,
    problems,
    search,
    security,
    sources,
)
from docindex_dagster.serving.http.conversations import Questions
from docindex_dagster.serving.http.problems import Problem
from docindex_dagster.serving.http.served_project import Served
from docindex_dagster.serving.mcp_server import server
from docindex_dagster.serving.memory_tools import MemoryTools
from docindex_dagster.serving.telemetry import metrics, tracing
from docindex_dagster.serving.telemetry.metrics import Metrics
from docindex_dagster.serving.tools import CollectingTools, Tools

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer
    from starlette.types import ASGIApp, Receive, Scope, Send


_ABOUT = """\
Search, contexts, the knowledge graph and the history of what a project indexes, and the jobs that keep it fresh. Every
answer is of one published generation. Errors are problem details (RFC 9457); lists are paged by an opaque cursor."""
_AGENTS_PATH = "/mcp"
_LONGEST_END_S = 3
_SPARE_THREADS = 16
_ROUTERS = (
    health.router,
    search.router,
    files.router,
    collected_questions.router,
    ask.router,
    conversations.router,
    sources.router,
    jobs.router,
    memory.router,
)
_PREFIX = "#/components/schemas/"
_REFERENCES = _PREFIX + "{model}"
_FASTAPIS_OWN = "HTTPValidationError"
_UNUSED = (_FASTAPIS_OWN, "ValidationError")  # in whose place there are problems
_FOR_PROGRAMMERS = "\n\nRaises:"  # of a docstring; clients get problems
_ATTRIBUTES = "\n\nAttributes:\n"
_ATTRIBUTE = re.compile(r"^    (\w+): (.*(?:\n     +.*)*)", re.MULTILINE)
_TOKEN = {
    "type": "http",
    "scheme": "bearer",
    "description": "`DOCINDEX_SERVE__TOKEN`, or else the token in `serve.token` in `DOCINDEX_HOME`.",
}


class Application(FastAPI):
    """An application whose description is whole."""

    def openapi(self) -> dict[str, Any]:
        """The description, made once."""
        if self.openapi_schema is not None:
            return self.openapi_schema
        described = super().openapi()
        schemas = described["components"]["schemas"]
        for name in _UNUSED:
            schemas.pop(name, None)
        for operation in (one for path in described["paths"].values() for one in path.values()):
            operation["description"] = operation["description"].partition(_FOR_PROGRAMMERS)[0]
            if _FASTAPIS_OWN in json.dumps(operation["responses"].get("422")):
                del operation["responses"]["422"]  # such a request is answered in another form, by another status
        for schema in schemas.values():
            _describe_fields(schema)
        made = TypeAdapter(Problem).json_schema(ref_template=_REFERENCES)
        schemas |= {**made.pop("$defs", {}), Problem.__name__: made}
        described["components"]["securitySchemes"] = {"token": _TOKEN}
        described["security"] = [{}, {"token": []}]
        self.openapi_schema = _with_plain_names(described)
        return self.openapi_schema


def _describe_fields(schema: dict[str, Any]) -> None:
    """Say of each field what the docstring of its class says of the attribute."""
    about, heading, attributes = schema.get("description", "").partition(_ATTRIBUTES)
    if not heading:
        return
    schema["description"] = about
    for name, text in _ATTRIBUTE.findall(attributes):
        sentence = " ".join(text.split())
        schema["properties"][name].setdefault("description", sentence[:1].upper() + sentence[1:])


def _with_plain_names(described: Mapping[str, Any]) -> dict[str, Any]:
    """The description with names of bodies that clients in any language can call a type by."""
    names = {name: _plain(name) for name in described["components"]["schemas"]}
    text = re.sub(rf"(?<={_PREFIX})\w+", lambda found: names[found[0]], json.dumps(described))
    renamed: dict[str, Any] = json.loads(text)
    schemas = renamed["components"]["schemas"]
    renamed["components"]["schemas"] = {names[name]: {**schemas[name], "title": names[name]} for name in schemas}
    return renamed


def _plain(name: str) -> str:
    """`AnswerHit` for `Answer_Hit_`; where two classes have a name, with the module's, as `JobsState`."""
    words = re.split("_+", "_".join(name.split("__")[-2:]))
    return "".join(word[:1].upper() + word[1:] for word in words)


class Agents:
    """Answers agents, over the Model Context Protocol without sessions.

    The protocol's library takes half a second to load, which no other request waits for.
    """

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


def build_app(served: Served, *, has_page: bool = True, traces: tracing.Tracing | None = None) -> FastAPI:
    """The application that serves a project.

    Args:
        served: the project; its jobs are opened and closed with the application.
        has_page: whether the page is served beside the API.
        traces: records what requests go through.
    """
    tools = Tools(served.live, served.runs_of)
    remembering = MemoryTools(served.memory) if served.memory is not None else None
    agents = Agents(tools, remembering, CollectingTools.of(served.live))
    questions = Questions(served.live, has_page=has_page)
    app = build_api(_living(served, tools, agents, questions), traces.of_requests if traces else tracing.OFF)
    app.state.served = served
    app.state.questions = questions
    app.router.routes.append(Route(_AGENTS_PATH, agents, methods=["POST"]))
    if has_page:
        from docindex_dagster.serving.web import pages

        pages.install(app)
    app.include_router(problems.router)  # behind the page, which explains them to people
    app.add_middleware(security.Guard, access=served.access)
    app.state.metrics = Metrics(served)
    metrics.install(app, app.state.metrics, (traces,) if traces else ())
    return app


def build_api(
    lifespan: Callable[[FastAPI], AbstractAsyncContextManager[None]] | None = None,
    telemetry: TelemetryConfig = tracing.OFF,
) -> Application:
    """The API alone, which describes itself; what it answers from is in its state, as `served`."""
    app = Application(
        title="docindex",
        summary="One fresh, searchable index of code and documentation.",
        description=_ABOUT,
        version=__version__,
        docs_url=None,  # they load scripts from another host
        redoc_url=None,
        lifespan=lifespan,
        generate_unique_id_function=lambda route: route.name,
        telemetry=telemetry,
    )
    problems.install(app)
    api = APIRouter(prefix="/api/v1")
    for router in _ROUTERS:
        api.include_router(router)
    app.include_router(api)
    app.include_router(completions.router)
    return app


def _living(
    served: Served, tools: Tools, agents: Agents, questions: Questions
) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    """Opens what the application needs as it starts, and closes it as it ends."""

    @asynccontextmanager
    async def living(_: FastAPI) -> AsyncIterator[None]:
        # What the first search needs takes a while to load.
        Thread(target=tools.prepare, daemon=True).start()
        # Some threads are left for health where slow requests have every place.
        anyio.to_thread.current_default_thread_limiter().total_tokens = served.access.concurrency + _SPARE_THREADS
        with served.jobs:
            async with anyio.create_task_group() as tasks, aclosing(questions):
                tasks.start_soon(agents.live)
                tasks.start_soon(questions.prepare)
                yield
                tasks.cancel_scope.cancel()

    return living


def run(app: FastAPI, host: str, port: int) -> None:
    """Answer requests until a signal ends it; those under way have some seconds to end."""
    import uvicorn

    from docindex_dagster.serving.http.connections import Connection

    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=Connection,
        ws="none",
        log_config=None,
        log_level="warning",
        access_log=False,  # addresses may hold what users look for
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=_LONGEST_END_S,
    )
    with writing_logs(), suppress(KeyboardInterrupt):
        uvicorn.Server(config).run()


class _Unformatted(QueueHandler):
    """Hands records over as they are."""

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        """Return the record; the base class would format it here, in the event loop."""
        return record


@contextmanager
def writing_logs() -> Iterator[None]:
    """Write what is logged in the block to standard error, by a thread, so that a traceback delays no request.

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


def _app_of(made: "MCPServer") -> "ASGIApp":
    """The server as an application; the guard knows who may call.

    Without sessions nothing is ever sent of the server's own accord, so a stream for it would only be held open.
    """
    from mcp.server.transport_security import TransportSecuritySettings

    unguarded = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    return made.streamable_http_app(
        stateless_http=True, json_response=True, transport_security=unguarded, streamable_http_path=_AGENTS_PATH
    )
