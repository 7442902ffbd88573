"""Problem details (RFC 9457): the kinds of problems, and the mapping from docindex errors to them.

`docs/reference/http.md` contains the table below, and the server explains each kind at the URL in its `type`.
"""

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from math import ceil
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.routing import Match

from docindex_dagster.core import errors
from docindex_dagster.core.safe_text import on_one_line, truncate_middle

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

MEDIA_TYPE = "application/problem+json"
_MAX_INPUT_CHARS = 100  # characters of the client's input repeated in an error
_MAX_MISTAKES = 20
_NOT_ALLOWED = 405
_METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE")
router = APIRouter()
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of problem: the end of its `type`, its HTTP status, its title, and advice for the client."""

    name: str
    status: int
    title: str
    advice: str

    @property
    def type(self) -> str:
        """The URI reference that identifies it. The server explains the kind at this URL."""
        return f"/problems/{self.name}"


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("invalid-request", 422, "The request is not valid", "Change the fields listed in `errors`."),
        Kind("query", 422, "The query cannot be answered", "Change the query or its filters as `detail` says."),
        Kind("source", 422, "The source is not usable", "See `detail` for the cause."),
        Kind("unknown-source", 404, "Source not found", "`GET /api/v1/sources` lists all sources."),
        Kind("unknown-file", 404, "File not found in the index", "`GET /api/v1/why` tells which rule excludes it."),
        Kind("not-indexed", 404, "The source is not indexed yet", "Start a job that indexes it."),
        Kind("unknown-job", 404, "Job not found", "`GET /api/v1/jobs` lists all jobs; old jobs are removed."),
        Kind(
            "unknown-conversation",
            404,
            "Conversation not found or expired",
            "Start a new one: ask without `conversation`.",
        ),
        Kind("unknown-model", 404, "Model not found", "`GET /v1/models` lists all models."),
        Kind("not-found", 404, "Nothing found at this URL", "`/openapi.json` lists all endpoints."),
        Kind("method", 405, "Method not allowed at this URL", "The `Allow` header lists the allowed methods."),
        Kind("exists", 409, "The source is already declared", "Use the source named in `detail`."),
        Kind("job", 422, "The job is not possible", "See `detail` for the cause."),
        Kind("job-ended", 409, "The job has ended", "There is nothing left to cancel."),
        Kind("key-reused", 409, "The idempotency key was used for another request", "Use a new key for a new request."),
        Kind("jobs-off", 409, "This server runs no jobs", "Ask a server started without `--no-jobs`."),
        Kind("queue-full", 429, "Too many jobs are queued", "Try again after `Retry-After` seconds."),
        Kind("busy", 503, "Too many concurrent requests", "Try again after `Retry-After` seconds."),
        Kind("too-long", 414, "The URL is too long", "Send a long query as the body of a `POST`."),
        Kind("too-large", 413, "The request is too large", "Send less; the limit is `serve.max_body_bytes`."),
        Kind("media-type", 415, "The body is not JSON", "Send `Content-Type: application/json`."),
        Kind("unauthorized", 401, "A token is required", "Send `Authorization: Bearer TOKEN`."),
        Kind("forbidden", 403, "The request is not allowed from here", "See `detail` for the cause."),
        Kind("host", 421, "Unknown host name", "Use the server's own address, or add the name to `serve.hosts`."),
        Kind("no-index", 503, "No readable index", "Index a source; `detail` says what is missing."),
        Kind("settings", 503, "The project's settings are invalid", "Fix docindex.toml as `detail` says."),
        Kind("upstream", 502, "A model did not respond", "Try again later, or with another mode."),
        Kind(
            "upstream-limit",
            429,
            "A model's rate limit was reached",
            "Try again after `Retry-After` seconds, if the header is present.",
        ),
        Kind(
            "upstream-late",
            504,
            "A model did not respond in time",
            "Try again later, or raise `llm.timeout_s`.",
        ),
        Kind(
            "budget",
            422,
            "The question exceeds its budget",
            "Ask with fewer `tokens`, or raise the limit named in `detail`.",
        ),
        Kind(
            "no-model",
            409,
            "No language model is configured",
            "Set `llm.provider` in docindex.toml, or leave out `extractive`.",
        ),
        Kind(
            "conversation-busy",
            409,
            "Another question of the conversation is being answered",
            "Wait for its answer, or close its request.",
        ),
        Kind(
            "memory-off",
            404,
            "This server has no memory",
            "Ask a server started with `--domain memory/NAME`.",
        ),
        Kind(
            "unknown-domain",
            404,
            "Domain not available on this server",
            "`GET /api/v1/memory/status` lists the available domains.",
        ),
        Kind(
            "collecting-off",
            409,
            "Questions are not collected here",
            "Set `evaluation.collect = true` in docindex.toml to let clients record what answers a question.",
        ),
        Kind("message", 422, "The message is not valid", "See `detail` for the cause."),
        Kind("message-size", 413, "The message is too long", "Split it; the limit is `memory.message_bytes`."),
        Kind("rate", 429, "Message rate limit reached", "Try again after `Retry-After` seconds."),
        Kind("quota", 507, "The domain has reached its quota", "Forget sessions, or raise `memory.quota_bytes`."),
        Kind("memory", 503, "The log of a domain cannot be read or written", "Nothing was written; `detail` says why."),
        Kind("full-disk", 507, "The disk is full", "Nothing was written; free some space and try again."),
        Kind("internal", 500, "Internal server error", "See the server's log for the cause, and please report it."),
        Kind("http", 400, "The request is not valid", "See the status."),
    )
}
# The first match decides, so subclasses come before their base class.
_BY_ERROR: tuple[tuple[type[BaseException], str], ...] = (
    (errors.UnknownJobError, "unknown-job"),
    (errors.EndedJobError, "job-ended"),
    (errors.FullQueueError, "queue-full"),
    (errors.ReusedKeyError, "key-reused"),
    (errors.JobsDisabledError, "jobs-off"),
    (errors.JobError, "job"),
    (errors.DomainError, "unknown-domain"),
    (errors.LongMessageError, "message-size"),
    (errors.MessageError, "message"),
    (errors.MessageRateError, "rate"),
    (errors.QuotaError, "quota"),
    (errors.LogError, "memory"),
    (errors.CollectionDisabledError, "collecting-off"),
    (errors.FullDiskError, "full-disk"),
    (errors.QueryError, "query"),
    (errors.SettingsError, "settings"),
    (errors.AlreadyDeclaredError, "exists"),
    (errors.SourceError, "source"),
    (errors.StoreError, "no-index"),
    (errors.AccessError, "no-index"),
    (errors.EmbeddingError, "upstream"),
    (errors.RerankError, "upstream"),
    (errors.LLMLimitError, "upstream-limit"),
    (errors.LLMTimeoutError, "upstream-late"),
    (errors.LLMBudgetError, "budget"),
    (errors.LLMError, "upstream"),
    (errors.DocindexError, "query"),
)
_BY_STATUS = {
    400: "http",
    401: "unauthorized",
    403: "forbidden",
    404: "not-found",
    413: "too-large",
    415: "media-type",
}


@dataclass(frozen=True, slots=True)
class Mistake:
    """An error in one part of a request, with its location and the expected value."""

    place: str
    detail: str


@dataclass(frozen=True, slots=True)
class Problem:
    """An error (RFC 9457). `type` is one of those in docs/reference/http.md, and a URL that explains it."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[Mistake] | None = None  # for invalid requests


# Problems that any request may cause.
ANYWHERE = (
    "invalid-request",
    "http",
    "unauthorized",
    "forbidden",
    "host",
    "too-large",
    "too-long",
    "busy",
    "internal",
)


def documented(
    *names: str, name_of: Callable[[str], str] = str, status_of: Callable[[int], int] = int, **body: Any
) -> dict[int | str, dict[str, Any]]:
    """Return the problem responses of a route for its OpenAPI description, including those of any request.

    Args:
        *names: the names of problems.
        name_of: maps the name of a problem to the one shown.
        status_of: maps the status of a problem to the one sent.
        **body: the description of a response; that of a problem by default.
    """
    by_status: dict[int, list[str]] = {}
    for kind in (KINDS[name] for name in dict.fromkeys((*names, *ANYWHERE))):
        by_status.setdefault(status_of(kind.status), []).append(f"`{name_of(kind.name)}`: {kind.title}")
    body = body or {"content": {MEDIA_TYPE: {"schema": {"$ref": f"#/components/schemas/{Problem.__name__}"}}}}
    return {status: {"description": "; ".join(texts), **body} for status, texts in sorted(by_status.items())}


class ProblemError(Exception):
    """A request to be answered with a problem and optional headers."""

    def __init__(self, name: str, detail: str, headers: Mapping[str, str] | None = None) -> None:
        """Create an error with the name of one of `KINDS`."""
        self.kind = KINDS[name]
        self.detail = detail
        self.headers = dict(headers or {})
        super().__init__(detail)


class Slots:
    """Slots for concurrent work. If none is free, the response is the problem `busy`."""

    def __init__(self, count: int, what: str, retry_after_s: int) -> None:
        """Create free slots. `what` follows the number of taken slots in errors: "requests are in progress"."""
        self._count, self._what, self._retry_after_s = count, what, retry_after_s
        self._taken = 0

    @contextmanager
    def take(self) -> Iterator[None]:
        """Take a slot during the block.

        Raises:
            ProblemError: no slot is free.
        """
        if self._taken >= self._count:
            raise ProblemError("busy", f"{self._taken} {self._what}", {"Retry-After": str(self._retry_after_s)})
        self._taken += 1
        try:
            yield
        finally:
            self._taken -= 1


class _ProblemResponse(JSONResponse):
    """A problem response. Under the OpenAI-compatible API, it is sent in OpenAI's format."""

    media_type = MEDIA_TYPE

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Send the response."""
        from docindex_dagster.serving.http import openai_form

        if scope["path"].startswith(f"{openai_form.PREFIX}/"):
            problem = json.loads(bytes(self.body))
            kept = {name: value for name, value in self.headers.items() if not name.startswith("content-")}
            status = openai_form.status_of(self.status_code)
            await JSONResponse(openai_form.error_of(problem), status, headers=kept)(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


def answer(name: str, detail: str, headers: Mapping[str, str] | None = None, **members: Any) -> JSONResponse:
    """Return a problem response.

    Args:
        name: the name of one of `KINDS`.
        detail: the cause of this occurrence.
        headers: headers to send with it.
        **members: further members of the problem.
    """
    kind, shown = KINDS[name], truncate_middle(on_one_line(detail))
    body = {"type": kind.type, "title": kind.title, "status": kind.status, "detail": shown, **members}
    return _ProblemResponse(body, kind.status, headers=headers)


def of_error(error: Exception) -> JSONResponse:
    """Return the response to a request that failed with an error."""
    if isinstance(error, ProblemError):
        return answer(error.kind.name, error.detail, error.headers)
    for error_type, name in _BY_ERROR:
        if isinstance(error, error_type):
            return answer(name, str(error), _headers(error))
    _log.error("request failed", exc_info=error)
    return answer("internal", "see the server's log")


def _headers(error: Exception) -> dict[str, str]:
    """Return the `Retry-After` header, in whole seconds, if the error says when to retry."""
    if (
        isinstance(error, errors.FullQueueError | errors.LLMFailedError | errors.MessageRateError)
        and error.retry_after_s is not None
    ):
        return {"Retry-After": str(ceil(error.retry_after_s))}
    return {}


def install(app: FastAPI) -> None:
    """Install handlers that answer all errors with problems. The guard handles unexpected ones."""

    async def expected(_: Request, error: Exception) -> Response:
        return of_error(error)

    async def invalid(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)  # noqa: S101 registered only for this type
        found = _mistakes(error.errors())
        detail = "; ".join(f"{mistake.place}: {mistake.detail}" for mistake in found)
        return answer("invalid-request", detail, errors=[asdict(mistake) for mistake in found])

    async def of_status(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101 registered only for this type
        if error.status_code == _NOT_ALLOWED:
            return _of_method(request)
        return answer(_BY_STATUS.get(error.status_code, "http"), str(error.detail), error.headers)

    for error_type in (ProblemError, errors.DocindexError):
        app.add_exception_handler(error_type, expected)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, of_status)


def _of_method(request: Request) -> Response:
    """Return the response for an unsupported method, with the methods of all matching routes; also for OPTIONS."""

    def takes(method: str) -> bool:
        scope = {**request.scope, "method": method}
        return any(route.matches(scope)[0] is Match.FULL for route in request.app.routes)

    allow = {"Allow": ", ".join(method for method in _METHODS if takes("GET" if method == "HEAD" else method))}
    if request.method == "OPTIONS":
        return Response(status_code=204, headers=allow)
    return answer("method", f"{request.method} is not one of {allow['Allow']}", allow)


def _mistakes(found: Sequence[Any]) -> list[Mistake]:
    """Return the error of each part of a request."""
    return [
        Mistake(_short(".".join(map(str, mistake["loc"]))), _short(str(mistake["msg"])))
        for mistake in found[:_MAX_MISTAKES]
    ]


def _short(text: str) -> str:
    return truncate_middle(on_one_line(text), _MAX_INPUT_CHARS)


@router.get("/problems/{name}", include_in_schema=False)
def problem(name: str) -> Kind:
    """Explain a kind of problem at the URL in its `type`.

    Raises:
        ProblemError: the kind does not exist.
    """
    if name not in KINDS:
        raise ProblemError("not-found", "kind of problem not found")
    return KINDS[name]
