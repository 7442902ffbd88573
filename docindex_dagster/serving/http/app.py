"""ASGI application of the server: the API, the agents' tools over HTTP, and the page, all behind the guard."""

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
from docindex_dagster.serving.http.served_project import ServedProject
from docindex_dagster.serving.mcp_server import server
from docindex_dagster.serving.memory_tools import MemoryTools
from docindex_dagster.serving.telemetry import metrics, tracing
from docindex_dagster.serving.telemetry.metrics import Metrics
from docindex_dagster.serving.tools import CollectingTools, Tools

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer
    from starlette.types import ASGIApp, Receive, Scope, Send


_DESCRIPTION = """\
Search, contexts, the knowledge graph and the history of an indexed project, and the jobs that keep the index fresh.
Every response comes from one published generation. Errors are problem details (RFC 9457); lists use opaque cursors."""
_AGENTS_PATH = "/mcp"
_SHUTDOWN_TIMEOUT_S = 3
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
_FASTAPI_ERROR = "HTTPValidationError"
_UNUSED = (_FASTAPI_ERROR, "ValidationError")  # replaced by problem details
_RAISES = "\n\nRaises:"  # in docstrings; clients see problem details instead
_ATTRIBUTES = "\n\nAttributes:\n"
_ATTRIBUTE = re.compile(r"^    (\w+): (.*(?:\n     +.*)*)", re.MULTILINE)
_TOKEN = {
    "type": "http",
    "scheme": "bearer",
    "description": "`DOCINDEX_SERVE__TOKEN`, or else the token in `serve.token` in `DOCINDEX_HOME`.",
}


class Application(FastAPI):
    """Application with a complete OpenAPI description."""

    def openapi(self) -> dict[str, Any]:
        """Return the description, which is created once."""
        if self.openapi_schema is not None:
            return self.openapi_schema
        schema_document = super().openapi()
        schemas = schema_document["components"]["schemas"]
        for name in _UNUSED:
            schemas.pop(name, None)
        for operation in (found for path in schema_document["paths"].values() for found in path.values()):
            operation["description"] = operation["description"].partition(_RAISES)[0]
            if _FASTAPI_ERROR in json.dumps(operation["responses"].get("422")):
                del operation["responses"]["422"]  # these errors use OpenAI's format and another status
        for schema in schemas.values():
            _describe_fields(schema)
        problem = TypeAdapter(Problem).json_schema(ref_template=_REFERENCES)
        schemas |= {**problem.pop("$defs", {}), Problem.__name__: problem}
        schema_document["components"]["securitySchemes"] = {"token": _TOKEN}
        schema_document["security"] = [{}, {"token": []}]
        self.openapi_schema = _with_valid_names(schema_document)
        return self.openapi_schema


def _describe_fields(schema: dict[str, Any]) -> None:
    """Describe each field with the text of its attribute in the docstring of the class."""
    summary, heading, attributes = schema.get("description", "").partition(_ATTRIBUTES)
    if not heading:
        return
    schema["description"] = summary
    for name, text in _ATTRIBUTE.findall(attributes):
        sentence = " ".join(text.split())
        schema["properties"][name].setdefault("description", sentence[:1].upper() + sentence[1:])


def _with_valid_names(schema_document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the description with schema names that are valid type names for clients in any language."""
    names = {name: _valid_name(name) for name in schema_document["components"]["schemas"]}
    text = re.sub(rf"(?<={_PREFIX})\w+", lambda match: names[match[0]], json.dumps(schema_document))
    result: dict[str, Any] = json.loads(text)
    schemas = result["components"]["schemas"]
    result["components"]["schemas"] = {names[name]: {**schemas[name], "title": names[name]} for name in schemas}
    return result


def _valid_name(name: str) -> str:
    """Return `AnswerHit` for `Answer_Hit_`, or `JobsState` for a class name that occurs in two modules."""
    words = re.split("_+", "_".join(name.split("__")[-2:]))
    return "".join(word[:1].upper() + word[1:] for word in words)


class Agents:
    """MCP endpoint for agents, without sessions.

    The MCP library takes half a second to load. Only requests to this endpoint wait for it.
    """

    def __init__(
        self, tools: Tools, memory: MemoryTools | None = None, collecting: CollectingTools | None = None
    ) -> None:
        """Create the endpoint for some tools."""
        self._tools = tools
        self._memory = memory
        self._collecting = collecting
        self._app: ASGIApp | None = None
        self._is_loaded = anyio.Event()

    async def live(self) -> None:
        """Load the library and serve until the task is canceled."""
        mcp = await run_in_threadpool(server, self._tools, self._memory, self._collecting)
        app = await run_in_threadpool(_app_of, mcp)
        async with mcp.session_manager.run():
            self._app = app
            self._is_loaded.set()
            await anyio.sleep_forever()

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Answer a request, after waiting for the library if necessary."""
        while self._app is None:
            await self._is_loaded.wait()
        await self._app(scope, receive, send)


def build_app(served: ServedProject, *, has_page: bool = True, traces: tracing.Tracing | None = None) -> FastAPI:
    """Create the application that serves a project.

    Args:
        served: the project; its jobs are opened and closed with the application.
        has_page: whether to serve the web page as well as the API.
        traces: records the requests.
    """
    tools = Tools(served.live, served.runs_of)
    memory_tools = MemoryTools(served.memory) if served.memory is not None else None
    agents = Agents(tools, memory_tools, CollectingTools.of(served.live))
    questions = Questions(served.live, has_page=has_page)
    app = build_api(_lifespan(served, tools, agents, questions), traces.for_fastapi if traces else tracing.OFF)
    app.state.served = served
    app.state.questions = questions
    app.router.routes.append(Route(_AGENTS_PATH, agents, methods=["POST"]))
    if has_page:
        from docindex_dagster.serving.web import pages

        pages.install(app)
    app.include_router(problems.router)  # after the page, which explains problems to people
    app.add_middleware(security.Guard, access=served.access)
    app.state.metrics = Metrics(served)
    metrics.install(app, app.state.metrics, (traces,) if traces else ())
    return app


def build_api(
    lifespan: Callable[[FastAPI], AbstractAsyncContextManager[None]] | None = None,
    telemetry: TelemetryConfig = tracing.OFF,
) -> Application:
    """Create the API alone, including its description. Its handlers use `app.state.served`."""
    app = Application(
        title="docindex",
        summary="One fresh, searchable index of code and documentation.",
        description=_DESCRIPTION,
        version=__version__,
        docs_url=None,  # the docs pages load scripts from another host
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


def _lifespan(
    served: ServedProject, tools: Tools, agents: Agents, questions: Questions
) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    """Return the lifespan that opens the application's resources at startup and closes them at shutdown."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        # The first search has to load a model. Start now.
        Thread(target=tools.prepare, daemon=True).start()
        # Spare threads keep health checks responsive while slow requests take all slots.
        anyio.to_thread.current_default_thread_limiter().total_tokens = served.access.concurrency + _SPARE_THREADS
        with served.jobs:
            async with anyio.create_task_group() as tasks, aclosing(questions):
                tasks.start_soon(agents.live)
                tasks.start_soon(questions.prepare)
                yield
                tasks.cancel_scope.cancel()

    return lifespan


def run(app: FastAPI, host: str, port: int) -> None:
    """Serve requests until a signal arrives. Requests in flight get a few seconds to finish."""
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
        access_log=False,  # URLs may contain search queries
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=_SHUTDOWN_TIMEOUT_S,
    )
    with writing_logs(), suppress(KeyboardInterrupt):
        uvicorn.Server(config).run()


class _RawQueueHandler(QueueHandler):
    """Queue handler that passes records on unformatted."""

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        """Return the record as it is. The base class would format it here, in the event loop."""
        return record


@contextmanager
def writing_logs() -> Iterator[None]:
    """Write log records of the block to standard error in a thread, so that a traceback delays no request.

    Otherwise the MCP library would install a handler that takes seconds to format a traceback.
    """
    records: SimpleQueue[logging.LogRecord] = SimpleQueue()
    writer = logging.StreamHandler()
    writer.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    handler, listener = _RawQueueHandler(records), QueueListener(records, writer)
    root = logging.getLogger()
    root.addHandler(handler)
    listener.start()
    try:
        yield
    finally:
        root.removeHandler(handler)
        listener.stop()


def _app_of(mcp: "MCPServer") -> "ASGIApp":
    """Return the MCP server as an application. The guard already checks who may call it.

    Without sessions the server never sends anything unrequested, so a stream for that would only be held open.
    """
    from mcp.server.transport_security import TransportSecuritySettings

    unguarded = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    return mcp.streamable_http_app(
        stateless_http=True, json_response=True, transport_security=unguarded, streamable_http_path=_AGENTS_PATH
    )
