"""The server as one ASGI application: the API, agents' tools over HTTP, and the page, behind the guard."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, suppress
from threading import Thread

import anyio
import anyio.to_thread
from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from fastapi.telemetry import TelemetryConfig
from starlette.routing import Route

from docindex_dagster import __version__
from docindex_dagster.serving.collecting_tools import CollectingTools
from docindex_dagster.serving.http import (
    asking,
    collecting,
    completions,
    files,
    health,
    history,
    jobs,
    llm,
    memory,
    openai_form,
    problems,
    searching,
    security,
    sources,
)
from docindex_dagster.serving.http.agents import PATH, Agents
from docindex_dagster.serving.http.description import Application
from docindex_dagster.serving.http.questions import Questions
from docindex_dagster.serving.http.served import Served
from docindex_dagster.serving.logs import writing_logs
from docindex_dagster.serving.memory_tools import MemoryTools
from docindex_dagster.serving.telemetry import requests, tracing
from docindex_dagster.serving.telemetry.metrics import Metrics
from docindex_dagster.serving.tools import Tools

_ABOUT = """\
Search, contexts, the knowledge graph and the history of what a project indexes, and the jobs that keep it fresh. Every
answer is of one published generation. Errors are problem details (RFC 9457); lists are paged by an opaque cursor."""
_LONGEST_END_S = 3
_SPARE_THREADS = 16
_ROUTERS = (
    health.router,
    searching.router,
    history.router,
    files.router,
    collecting.router,
    asking.router,
    llm.router,
    sources.router,
    jobs.router,
    memory.router,
)


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
    app.router.routes.append(Route(PATH, agents, methods=["POST"]))
    if has_page:
        from docindex_dagster.serving.web import pages

        pages.install(app)
    app.include_router(problems.router)  # behind the page, which explains them to people
    app.add_middleware(security.Guard, access=served.access)
    app.add_middleware(openai_form.ErrorsInForm)
    app.state.metrics = Metrics(served)
    requests.install(app, app.state.metrics, (traces,) if traces else ())
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
        generate_unique_id_function=_operation,
        telemetry=telemetry,
    )
    problems.install(app)
    api = APIRouter(prefix="/api/v1")
    for router in _ROUTERS:
        api.include_router(router)
    app.include_router(api)
    app.include_router(completions.router)
    return app


def _operation(route: APIRoute) -> str:
    return route.name


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
