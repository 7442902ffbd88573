"""Errors as problem details (RFC 9457): which there are, and which error of docindex is which.

`docs/serving.md` lists them from the table here, and the server explains each at the address that its `type` names.
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
from docindex_dagster.core.safe_text import in_line, shortened

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

MEDIA_TYPE = "application/problem+json"
_LONGEST_INPUT = 100  # characters of what a client sent that are repeated
_MOST_MISTAKES = 20
_NOT_ALLOWED = 405
_METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE")
router = APIRouter()
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of problem: the end of its `type`, its HTTP status, its title, and what a client should do."""

    name: str
    status: int
    title: str
    advice: str

    @property
    def type(self) -> str:
        """The URI reference that identifies it, at which the server explains it."""
        return f"/problems/{self.name}"


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("invalid-request", 422, "The request is not valid", "Change what `errors` names."),
        Kind(
            "query", 422, "The query cannot be answered as asked", "Change the query or its filters; `detail` says how."
        ),
        Kind("source", 422, "The source cannot be used as asked", "`detail` says what is wrong with it."),
        Kind("unknown-source", 404, "There is no such source", "`GET /api/v1/sources` lists them."),
        Kind(
            "unknown-file", 404, "There is no such file in the index", "`GET /api/v1/why` says which rule keeps it out."
        ),
        Kind("not-indexed", 404, "The source is not indexed yet", "Start a job that indexes it."),
        Kind("unknown-job", 404, "There is no such job", "`GET /api/v1/jobs` lists them; old ones are removed."),
        Kind(
            "unknown-conversation",
            404,
            "There is no such conversation, or no longer",
            "Begin another one: ask without `conversation`.",
        ),
        Kind("unknown-model", 404, "There is no such model", "`GET /v1/models` lists them."),
        Kind("not-found", 404, "There is nothing at this address", "`/openapi.json` lists the addresses."),
        Kind("method", 405, "The address does not take this method", "The header `Allow` names those that it takes."),
        Kind("exists", 409, "The source is declared already", "Use the one that `detail` names."),
        Kind("job", 422, "The job cannot be done as asked", "`detail` says why."),
        Kind("job-ended", 409, "The job has ended", "Nothing is left to be cancelled."),
        Kind(
            "key-reused", 409, "The idempotency key was used for another request", "Take a new key for a new request."
        ),
        Kind("jobs-off", 409, "This server runs no jobs", "Ask the one that was started without `--no-jobs`."),
        Kind("queue-full", 429, "Too many jobs wait", "Try again after `Retry-After` seconds."),
        Kind("busy", 503, "Too many requests at once", "Try again after `Retry-After` seconds."),
        Kind("too-long", 414, "The address is too long", "Send a long query as the body of a `POST`."),
        Kind("too-large", 413, "The request is too large", "Send less; `serve.max_body_bytes` is the limit."),
        Kind("media-type", 415, "The body is not JSON", "Send `Content-Type: application/json`."),
        Kind("unauthorized", 401, "A token is needed", "Send `Authorization: Bearer TOKEN`."),
        Kind("forbidden", 403, "The request is not allowed from here", "`detail` says why."),
        Kind("host", 421, "The server is not called so", "Use its own address, or name this one in `serve.hosts`."),
        Kind("no-index", 503, "There is no index that can be read", "Index a source; `detail` says what is missing."),
        Kind("settings", 503, "The settings of the project are wrong", "Mend docindex.toml as `detail` says."),
        Kind("upstream", 502, "A model that was asked did not answer", "Try again later, or with another mode."),
        Kind(
            "upstream-limit",
            429,
            "A model is asked too often",
            "Try again after `Retry-After` seconds, where it says so.",
        ),
        Kind(
            "upstream-late",
            504,
            "A model that was asked did not answer in time",
            "Try again later, or raise `llm.timeout_s`.",
        ),
        Kind(
            "budget",
            422,
            "The question costs more than a question may",
            "Ask with fewer `tokens`, or raise the limit that `detail` names.",
        ),
        Kind(
            "no-model",
            409,
            "No language model is set",
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
            "Ask one that was started with `--domain memory/NAME`.",
        ),
        Kind(
            "unknown-domain",
            404,
            "This server reaches no such domain",
            "`GET /api/v1/memory/status` lists those that it was started with.",
        ),
        Kind(
            "collecting-off",
            409,
            "Questions are not collected here",
            "Set `evaluation.collect = true` in docindex.toml to let clients note what answers a question.",
        ),
        Kind("message", 422, "The message cannot be taken as it is", "`detail` says what is wrong with it."),
        Kind("message-size", 413, "The message is too long", "Split it; `memory.message_bytes` is the limit."),
        Kind("rate", 429, "Too many messages are written", "Try again after `Retry-After` seconds."),
        Kind("quota", 507, "The domain is as large as it may be", "Forget sessions, or raise `memory.quota_bytes`."),
        Kind("memory", 503, "The log of a domain cannot be read or written", "Nothing was written; `detail` says why."),
        Kind("full-disk", 507, "The disk is full", "Nothing was written; make room, and try again."),
        Kind("internal", 500, "Something went wrong in the server", "Its log says what; please report it."),
        Kind("http", 400, "The request is not valid", "See its status."),
    )
}
# The first that fits decides, so a subclass stands before its base.
_BY_ERROR: tuple[tuple[type[BaseException], str], ...] = (
    (errors.UnknownJobError, "unknown-job"),
    (errors.EndedJobError, "job-ended"),
    (errors.FullQueueError, "queue-full"),
    (errors.UsedKeyError, "key-reused"),
    (errors.JobsOffError, "jobs-off"),
    (errors.JobError, "job"),
    (errors.DomainError, "unknown-domain"),
    (errors.LongMessageError, "message-size"),
    (errors.MessageError, "message"),
    (errors.RateError, "rate"),
    (errors.QuotaError, "quota"),
    (errors.LogError, "memory"),
    (errors.CollectingOffError, "collecting-off"),
    (errors.FullDiskError, "full-disk"),
    (errors.QueryError, "query"),
    (errors.SettingsError, "settings"),
    (errors.DeclaredError, "exists"),
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
    """What is wrong with a part of a request: where it stands, and what it should be."""

    place: str
    detail: str


@dataclass(frozen=True, slots=True)
class Problem:
    """What went wrong (RFC 9457). `type` is one of those in docs/serving.md, and an address that explains it."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[Mistake] | None = None  # of an invalid request


# What any request may meet.
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
    """The answers of a route that are problems, for its description: these, and those that any request may meet.

    Args:
        *names: of problems.
        name_of: what they are called there.
        status_of: which status they have there.
        **body: how an answer is described; as a problem by default.
    """
    by_status: dict[int, list[str]] = {}
    for kind in (KINDS[name] for name in dict.fromkeys((*names, *ANYWHERE))):
        by_status.setdefault(status_of(kind.status), []).append(f"`{name_of(kind.name)}`: {kind.title}")
    body = body or {"content": {MEDIA_TYPE: {"schema": {"$ref": f"#/components/schemas/{Problem.__name__}"}}}}
    return {status: {"description": "; ".join(texts), **body} for status, texts in sorted(by_status.items())}


class ProblemError(Exception):
    """A request that is answered with a problem; `headers` go with it."""

    def __init__(self, name: str, detail: str, headers: Mapping[str, str] | None = None) -> None:
        """`name` is one of `KINDS`."""
        self.kind = KINDS[name]
        self.detail = detail
        self.headers = dict(headers or {})
        super().__init__(detail)


class Places:
    """Places for what is done at once; where none is free, the answer is the problem `busy`."""

    def __init__(self, most: int, what: str, retry_after_s: int) -> None:
        """Begin with all free; `what` follows the number of those taken, such as "requests are under way"."""
        self._most, self._what, self._retry_after_s = most, what, retry_after_s
        self._taken = 0

    @contextmanager
    def one(self) -> Iterator[None]:
        """Take a place for as long as the block runs.

        Raises:
            ProblemError: none is free.
        """
        if self._taken >= self._most:
            raise ProblemError("busy", f"{self._taken} {self._what}", {"Retry-After": str(self._retry_after_s)})
        self._taken += 1
        try:
            yield
        finally:
            self._taken -= 1


class _Answer(JSONResponse):
    """A problem. Where OpenAI's API is spoken, it is sent in the form of that."""

    media_type = MEDIA_TYPE

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Answer a request."""
        from docindex_dagster.serving.http import openai_form

        if scope["path"].startswith(f"{openai_form.PREFIX}/"):
            problem = json.loads(bytes(self.body))
            kept = {name: value for name, value in self.headers.items() if not name.startswith("content-")}
            status = openai_form.status_of(self.status_code)
            await JSONResponse(openai_form.error_of(problem), status, headers=kept)(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


def answer(name: str, detail: str, headers: Mapping[str, str] | None = None, **members: Any) -> JSONResponse:
    """The answer that says what went wrong.

    Args:
        name: of one of `KINDS`.
        detail: what happened this time.
        headers: to be sent with it.
        **members: further members of the problem.
    """
    kind, shown = KINDS[name], shortened(in_line(detail))
    body = {"type": kind.type, "title": kind.title, "status": kind.status, "detail": shown, **members}
    return _Answer(body, kind.status, headers=headers)


def of_error(error: Exception) -> JSONResponse:
    """The answer to a request that an error ended."""
    if isinstance(error, ProblemError):
        return answer(error.kind.name, error.detail, error.headers)
    for of, name in _BY_ERROR:
        if isinstance(error, of):
            return answer(name, str(error), _headers(error))
    _log.error("a request failed", exc_info=error)
    return answer("internal", "see the log of the server")


def _headers(error: Exception) -> dict[str, str]:
    """When it is worth trying again, in whole seconds, where an error says so."""
    if (
        isinstance(error, errors.FullQueueError | errors.LLMFailedError | errors.RateError)
        and error.retry_after_s is not None
    ):
        return {"Retry-After": str(ceil(error.retry_after_s))}
    return {}


def install(app: FastAPI) -> None:
    """Let an application answer with problems, whatever goes wrong; what it did not expect is the guard's."""

    async def expected(_: Request, error: Exception) -> Response:
        return of_error(error)

    async def invalid(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)  # noqa: S101 it is registered for it
        found = _mistakes(error.errors())
        detail = "; ".join(f"{mistake.place}: {mistake.detail}" for mistake in found)
        return answer("invalid-request", detail, errors=[asdict(mistake) for mistake in found])

    async def of_status(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101 it is registered for it
        if error.status_code == _NOT_ALLOWED:
            return _of_method(request)
        return answer(_BY_STATUS.get(error.status_code, "http"), str(error.detail), error.headers)

    for of in (ProblemError, errors.DocindexError):
        app.add_exception_handler(of, expected)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, of_status)


def _of_method(request: Request) -> Response:
    """That an address does not take a method, with those that it takes, of all its routes; these, to OPTIONS."""

    def takes(method: str) -> bool:
        scope = {**request.scope, "method": method}
        return any(route.matches(scope)[0] is Match.FULL for route in request.app.routes)

    allow = {"Allow": ", ".join(method for method in _METHODS if takes("GET" if method == "HEAD" else method))}
    if request.method == "OPTIONS":
        return Response(status_code=204, headers=allow)
    return answer("method", f"{request.method} is not one of {allow['Allow']}", allow)


def _mistakes(found: Sequence[Any]) -> list[Mistake]:
    """What is wrong with each part of a request."""
    return [
        Mistake(_short(".".join(map(str, mistake["loc"]))), _short(str(mistake["msg"])))
        for mistake in found[:_MOST_MISTAKES]
    ]


def _short(text: str) -> str:
    return shortened(in_line(text), _LONGEST_INPUT)


@router.get("/problems/{name}", include_in_schema=False)
def problem(name: str) -> Kind:
    """Explain a kind of problem, at the address that its `type` is.

    Raises:
        ProblemError: there is no such kind.
    """
    if name not in KINDS:
        raise ProblemError("not-found", "there is no such kind of problem")
    return KINDS[name]
