"""Typed settings from `docindex.toml` and `DOCINDEX_*` environment variables, which take precedence.

The file is searched for upwards from the working directory. `DOCINDEX_SECTION__NAME` sets any value
(`DOCINDEX_SEARCH__TOP_K=20`), and `DOCINDEX_HOME` sets the location of the index.
"""

import os
import re
import stat
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict
from pydantic_settings import SettingsError as EnvironmentSettingsError

from docindex_dagster.core import confinement, plugins, trust
from docindex_dagster.core.errors import LinkError, OwnershipError, SettingsError, first_line
from docindex_dagster.core.files import real_path
from docindex_dagster.core.git_folders import is_tracked
from docindex_dagster.core.hashing import digest
from docindex_dagster.core.privileges import (
    LIBRARY_PLACEHOLDER,
    Privileged,
    environment_privileges,
    granted_folders,
    privileges_of,
    read_limited,
    without_ignored,
)
from docindex_dagster.core.safe_text import command
from docindex_dagster.core.trust import Privilege, Trust, check_owner, trust_in
from docindex_dagster.core.urls import check_url, scrub

CONFIG_NAME = "docindex.toml"
HOME_NAME = ".docindex"
_SOURCE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
# Branch and tag names that git rejects.
_INVALID_REVISION = re.compile(r"^[-/.]|[\x00-\x20\x7f~^:?*\[\\]|\.\.|//|@\{|/\.|\.lock(/|$)|[/.]$|^@?$")
# Settings that only environment variables may set.
_SECRETS = (
    ("alerts", "webhook"),
    *((section, "api_key") for section in ("embedding", "llm", "rerank")),
    ("serve", "token"),
)
# Built-in choices; plugins add more.
_EMBEDDERS = ("static", "openai", "minilm", "sentence-transformers")
_LLMS = ("none", "openai", "anthropic", "ollama", "codex")
_EXTRACTORS = ("patterns", "spacy", "llm", "none")
_RERANKERS = ("none", "mmr", "cross-encoder", "remote")
# The built-in choices that neither send texts nor load a model named in the file.
_LOCAL_EMBEDDERS = ("static",)
_LOCAL_EXTRACTORS = ("patterns", "spacy", "none")
_LOCAL_RERANKERS = ("none", "mmr")
_CHUNKERS = ("code", "markdown", "mdx", "rst", "html", "text", "notebook", "asciidoc", "pdf", "lines", "messages")
_MIN_TOKEN_CHARS = 16
_BUCKETS = ("s3", "gs", "az")  # schemes of object stores with conditional writes
_MAX_CACHED = 8  # parsed files, of any project
_CRON = re.compile(r"^\s*\S+(\s+\S+){4}\s*$")


def is_parent_of_libraries(path: str) -> bool:
    """Return whether a path declares each child of a folder as a library."""
    return LIBRARY_PLACEHOLDER in path and Path(path).name == LIBRARY_PLACEHOLDER  # the fast check usually fails


def _path(value: str) -> str:
    if "\0" in value:
        raise ValueError("contains a NUL character")
    try:
        Path(value).expanduser()
    except RuntimeError as error:
        raise ValueError(f"home folder not found: {value}") from error
    return value


def _url(value: str) -> str:
    # Errors do not repeat the URL, since it may contain a secret.
    return check_url(value)


def _revision(value: str) -> str:
    if _INVALID_REVISION.search(value) or not value.isprintable():
        raise ValueError("must be a branch or tag name, or a commit ID")
    return value


def _name(value: str) -> str:
    name, at, label = value.partition("@")
    if not _SOURCE_NAME.fullmatch(name):
        raise ValueError("must consist of letters, digits, '.', '_' and '-', and start with a letter or digit")
    if at:
        _revision(label)
    return value


def _cron(value: object) -> object:
    if isinstance(value, str) and not _CRON.match(value):
        raise ValueError("must be a cron expression with five fields, such as '0 3 * * *'")
    return value


def _timezone(value: str) -> str:
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise ValueError("must be an IANA time zone, such as 'Europe/Berlin'") from error
    return value


def _http(value: str) -> str:
    try:
        has_host = bool(urlsplit(value).hostname)
    except ValueError:
        has_host = False
    if not has_host or not value.startswith(("https://", "http://")):
        raise ValueError("must be an HTTP or HTTPS URL")
    return value


def _endpoint(value: str) -> str:
    parts = urlsplit(_http(value))
    if "@" in parts.netloc:
        raise ValueError("contains a user name or password, which would be logged; set DOCINDEX_EMBEDDING__API_KEY")
    if parts.query or parts.fragment:
        raise ValueError("must end with a path, as in 'http://127.0.0.1:11434/v1'")
    return value


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class SourceSettings(_Section):
    """A `[[source]]` table."""

    kind: Literal["library", "git"]
    """`library` for a folder, `git` for a repository."""
    path: Annotated[str, AfterValidator(_path)] | None = None
    """The folder, relative to `docindex.toml`. `FOLDER/{library}` declares each subfolder as a library."""
    url: Annotated[str, AfterValidator(_url)] | None = None
    """The remote of a git source, instead of `path`: `https://`, `http://`, `ssh://`, `file:///`, `user@host:path`."""
    branch: Annotated[str, AfterValidator(_revision)] | None = None
    """The branch, tag or commit to follow. Default: the remote's default branch, or the working tree of a `path`."""
    branches: tuple[Annotated[str, AfterValidator(_revision)], ...] = ()
    """More branches to index, each as a source `git/NAME@BRANCH`."""
    submodules: bool = False
    """Also index the files of submodules of a git source."""
    name: Annotated[str, AfterValidator(_name)] | None = None
    """The name in the source's key. Default: the name of the folder or repository. A second worktree of a repository
    needs `NAME@LABEL`."""
    include: tuple[str, ...] = ()
    """Globs as in `.gitignore`. If set, other files are skipped."""
    exclude: tuple[str, ...] = ()
    """Globs as in `.gitignore` of files to skip."""
    recursive: bool = True
    """Also index subfolders."""
    include_code: bool = True
    """Index code; otherwise only documents."""
    untracked: bool = True
    """Also index files of a git source that are neither tracked nor ignored."""
    version: str | None = None
    """A version to show with the source."""

    @property
    def declares_children(self) -> bool:
        """Return whether the table declares each child of a folder as a library."""
        return self.path is not None and is_parent_of_libraries(self.path)

    @model_validator(mode="after")
    def _require_one_location(self) -> Self:
        if (self.path is None) is (self.url is None):
            both = "" if self.path is None else ", not both"
            raise ValueError(f"must have {'path' if self.kind == 'library' else 'path or url'}{both}")
        return self

    @model_validator(mode="after")
    def _git_keys_only_in_git(self) -> Self:
        git_keys = [key for key in ("url", "branch", "branches", "submodules") if getattr(self, key)]
        if self.kind == "library" and git_keys:
            raise ValueError(f"{git_keys[0]} requires kind = 'git'")
        if self.kind == "library" and "@" in (self.name or ""):
            raise ValueError("'@' in name requires kind = 'git': it separates a repository from its branch")
        return self

    @model_validator(mode="after")
    def _labels_name_one_work_tree(self) -> Self:
        if "@" in (self.name or "") and (self.url or self.branch or self.branches):
            raise ValueError("NAME@LABEL in name is for an additional worktree with only a path; use branches instead")
        return self

    @model_validator(mode="after")
    def _each_branch_once(self) -> Self:
        if len({self.branch, *self.branches}) <= len(self.branches):
            raise ValueError("branches must name each branch once, and must not repeat the value of branch")
        return self

    @model_validator(mode="after")
    def _placeholder_only_in_libraries(self) -> Self:
        if self.path is None or LIBRARY_PLACEHOLDER not in self.path:
            return self
        if self.kind != "library" or self.name is not None:
            raise ValueError(
                f"{LIBRARY_PLACEHOLDER} in path requires kind = 'library' and no name, since each child has its own"
            )
        if not self.declares_children:
            raise ValueError(f"{LIBRARY_PLACEHOLDER} must be the last component of path")
        return self


class DiscoverySettings(_Section):
    """Limits on the files that are indexed."""

    max_file_bytes: int = Field(default=1 << 20, ge=1, le=16 << 20)
    """Larger files are skipped. Files over 2 MiB are cut by lines, without parsing. PDFs may be 32 times as large."""
    secrets: Annotated[Literal["skip", "index"], Privileged(unless=["skip"])] = "skip"
    """`skip` skips files that hold secrets, and masks secrets in other files. `index` does neither."""


def _file_glob(value: str) -> str:
    if not value.strip() or value.startswith(("!", "#")) or value.endswith("/") or "\n" in value:
        raise ValueError("must be a file glob, such as '*.feature' or 'notes/**'")
    return value


class ChunkingSettings(_Section):
    """Chunk sizes: tokens for documents, non-whitespace characters for code."""

    target_tokens: int = Field(default=512, ge=16)
    """Target size of a document's chunks."""
    overlap_tokens: int = Field(default=50, ge=0)
    """Overlap of adjacent chunks of a long section."""
    max_tokens: int = Field(default=2048, ge=32)
    """Maximum size of a document's chunks."""
    min_tokens: int = Field(default=128, ge=0)
    """Shorter sections are joined."""
    code_chars: int = Field(default=1500, ge=100)
    """Target size of code chunks, in characters other than whitespace."""
    parse_timeout_s: float = Field(default=10, gt=0)
    """Seconds after which a file is cut by lines instead. A PDF may take 12 times as long; then only its name is
    indexed."""
    workers: int = Field(default=0, ge=0, le=64)
    """Parsing processes. 0: one per core, at most four."""
    chunkers: Annotated[dict[Annotated[str, AfterValidator(_file_glob)], str], Privileged(unless=_CHUNKERS)] = {}
    """A table from globs to chunkers. The last match wins."""

    @model_validator(mode="after")
    def _sizes_are_ordered(self) -> Self:
        if not self.min_tokens < self.target_tokens <= self.max_tokens:
            raise ValueError("must satisfy min_tokens < target_tokens <= max_tokens")
        if self.overlap_tokens * 2 > self.target_tokens:
            raise ValueError("overlap_tokens must be at most half of target_tokens")
        return self


def _one_of(builtin: tuple[str, ...], group: str) -> AfterValidator:
    """Return a validator that accepts built-in names, and plugins of an entry-point group."""

    def check(value: str) -> str:
        if value not in builtin and value not in (others := plugins.plugin_names(group)):
            names = ", ".join(repr(name) for name in (*builtin, *others))
            raise ValueError(f"{value!r} not found; must be one of {names}, or provided by another package")
        return value

    return AfterValidator(check)


class EmbeddingSettings(_Section):
    """Embedding model. Each provider ignores the settings that do not apply to it."""

    provider: Annotated[str, _one_of(_EMBEDDERS, plugins.EMBEDDERS), Privileged(unless=_LOCAL_EMBEDDERS)] = "static"
    """The embedding provider: `static`, `openai`, `minilm`, `sentence-transformers`, or a plug-in."""
    model: Annotated[Annotated[str, AfterValidator(_path)] | None, Privileged()] = None
    """The provider's model. For `sentence-transformers`, a name on the hub or a folder; for `minilm`, a folder."""
    dimensions: int | None = Field(default=None, ge=2, le=65_536)
    """Values of a vector, for models that offer a choice. `openai` needs it for models that it does not know."""
    device: str | None = None
    """The torch device of `sentence-transformers` and `minilm`. Default: the fastest."""
    base_url: Annotated[Annotated[str, AfterValidator(_endpoint)] | None, Privileged()] = None
    """Base URL of an OpenAI-compatible endpoint, such as `http://127.0.0.1:11434/v1`."""
    batch_size: int | None = Field(default=None, ge=1, le=10_000)
    """Texts per batch. Default: the provider's; 100 for `openai`."""
    concurrency: int = Field(default=4, ge=1, le=64)
    """Concurrent requests of `openai`."""
    timeout_s: float = Field(default=60, gt=0, le=3600)
    """Timeout of a request of `openai`, in seconds."""
    retries: int = Field(default=6, ge=0, le=100)
    """Retries of a request of `openai`, with exponential backoff."""
    requests_per_minute: int | None = Field(default=None, ge=1)
    """Rate limit of `openai` for a run."""
    tokens_per_minute: int | None = Field(default=None, ge=1)
    """Token rate limit of `openai` for a run."""
    price: float | None = Field(default=None, ge=0)
    """Dollars per million tokens, to report what a run cost. Known for OpenAI's models."""
    api_key: SecretStr | None = None
    """API key, only from `DOCINDEX_EMBEDDING__API_KEY`, or else `OPENAI_API_KEY`."""


class LLMSettings(_Section):
    """Language model for answers, summaries and concepts."""

    provider: Annotated[str, _one_of(_LLMS, plugins.LLMS), Privileged(unless=["none"])] = "none"
    """The language model provider: `openai`, `anthropic`, `ollama`, `codex` (answers only), or a plug-in."""
    model: Annotated[str | None, Field(min_length=1), Privileged()] = None
    """The model's name. All providers except `codex` need it."""
    base_url: Annotated[Annotated[str, AfterValidator(_http)] | None, Privileged()] = None
    """Base URL of another endpoint with the provider's API, such as `http://localhost:8000/v1`."""
    timeout_s: float = Field(default=60, gt=0, le=3600)
    """Timeout in seconds for the complete response, and so for its first token."""
    retries: int = Field(default=3, ge=0, le=100)
    """Retries of a request, with exponential backoff. An answer is not retried after its first token."""
    concurrency: int = Field(default=4, ge=1, le=64)
    """Concurrent requests for summaries."""
    context_tokens: int | None = Field(default=None, ge=1024)
    """Context window of the model. docindex requests this size from `ollama`; its default here is 16384."""
    max_answer_tokens: int = Field(default=1500, ge=16)
    """Maximum length of an answer."""
    question_tokens: Annotated[int, Privileged(most=200_000)] = Field(default=200_000, ge=0)
    """Token budget of a question, including everything that its answer looks up."""
    question_dollars: float | None = Field(default=None, ge=0)
    """Cost limit of a question. It needs `price_in` and `price_out`."""
    price_in: float | None = Field(default=None, ge=0)
    """Dollars per million input tokens."""
    price_out: float | None = Field(default=None, ge=0)
    """Dollars per million output tokens."""
    api_key: SecretStr | None = None
    """API key, only from `DOCINDEX_LLM__API_KEY`."""

    @model_validator(mode="after")
    def _require_a_model(self) -> Self:
        if self.provider in {"openai", "anthropic", "ollama"} and self.model is None:
            raise ValueError(f"llm.model is required for provider = {self.provider!r}")
        return self

    @model_validator(mode="after")
    def _require_prices(self) -> Self:
        if self.question_dollars is not None and (self.price_in is None or self.price_out is None):
            raise ValueError(
                "llm.question_dollars requires llm.price_in and llm.price_out, in dollars per million tokens"
            )
        return self


class SummarySettings(_Section):
    """LLM-written summaries of chunks."""

    enabled: Annotated[bool, Privileged(unless=[False])] = False
    """Let the language model summarize each chunk."""
    max_tokens: int = Field(default=120, ge=16, le=1000)
    """Maximum length of a summary."""
    budget_tokens: Annotated[int, Privileged(most=1_000_000)] = Field(default=1_000_000, ge=0)
    """Token budget of a run of a source, input and output. 0: write no more summaries."""
    min_chars: int = Field(default=200, ge=0)
    """Shorter chunks get no summary."""
    source_types: tuple[Literal["doc", "code", "test", "config"], ...] = ("doc", "code")
    """The types of files whose chunks get a summary."""


class HistorySettings(_Section):
    """Searchable history of git sources."""

    commits: int = Field(default=500, ge=0, le=100_000)
    """How many of the newest commits of a git source are searchable. 0: none."""


class GraphSettings(_Section):
    """Content of the knowledge graph."""

    enabled: bool = True
    """Build the knowledge graph."""
    code: bool = True
    """Extract definitions, imports and calls from code."""
    concepts: Annotated[str, _one_of(_EXTRACTORS, plugins.EXTRACTORS), Privileged(unless=_LOCAL_EXTRACTORS)] = (
        "patterns"
    )
    """The extractor of concepts from documents: `patterns`, `spacy`, `llm`, `none`, or a plug-in."""
    max_triples_per_chunk: int = Field(default=10, ge=1, le=100)
    """Maximum number of relations between concepts per chunk, and of mentioned concepts."""
    file_timeout_s: float = Field(default=60, gt=0, le=3600)
    """Seconds for the edges of one file. After that, the graph has only the file's definitions."""
    timeout_s: float = Field(default=600, gt=0, le=86_400)
    """Seconds for the edges of all files of a source. The next run continues with the remaining files."""


class SearchSettings(_Section):
    """Search defaults."""

    top_k: int = Field(default=10, ge=1, le=1000)
    """Number of results."""
    candidates: int = Field(default=100, ge=1, le=10_000)
    """Candidates from each retriever, before fusion."""
    default_source: str | None = None
    """The source to search by default. `docindex source use` sets it."""
    look_s: float = Field(default=0.05, ge=0, le=60)
    """Seconds for checking whether sources have changed, next to each answer. 0: no check."""


class RerankSettings(_Section):
    """Reranking of the best results."""

    provider: Annotated[str, _one_of(_RERANKERS, plugins.RERANKERS), Privileged(unless=_LOCAL_RERANKERS)] = "none"
    """The reranker: `none`, `mmr`, `cross-encoder`, `remote`, or a plug-in."""
    candidates: int = Field(default=50, ge=2, le=1000)
    """How many of the best results to rerank."""
    weight: float = Field(default=0.5, ge=0, le=1)
    """Weight of the model's score relative to the search score."""
    relevance: float = Field(default=0.5, ge=0, le=1)
    """For `mmr`: 1 is only relevance, 0 only diversity (lambda in the paper)."""
    model: Annotated[str | None, Privileged()] = None
    """Model of `cross-encoder` (default: `cross-encoder/ms-marco-MiniLM-L6-v2`) or `remote`."""
    url: Annotated[Annotated[str, AfterValidator(_http)] | None, Privileged()] = None
    """Endpoint of `remote`, including its path."""
    timeout_s: float = Field(default=5, gt=0, le=600)
    """Timeout of `remote` for the complete response, in seconds."""
    api_key: SecretStr | None = None
    """API key of `remote`, only from `DOCINDEX_RERANK__API_KEY`."""

    @model_validator(mode="after")
    def _remote_requires_a_url(self) -> Self:
        if self.provider == "remote" and self.url is None:
            raise ValueError(
                "rerank.url is required for provider = 'remote', such as 'https://api.cohere.com/v2/rerank'"
            )
        return self


class EvaluationSettings(_Section):
    """Nightly evaluation of search quality, and collection of questions for it."""

    questions: int = Field(default=100, ge=0, le=10_000)
    """Questions per source that are asked every night. 0: no nightly evaluation."""
    commits: int = Field(default=1000, ge=1, le=100_000)
    """How many of the newest commits of a source are used to generate questions."""
    file: Annotated[Annotated[str, AfterValidator(_path)] | None, Privileged()] = None
    """A file of additional questions, `.csv` or `.jsonl`."""
    collect: bool = False
    """Let the page, the API and agents record which location answered a question."""


Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]


class ScheduleSettings(_Section):
    """Schedule of nightly runs, and the polling interval for remotes."""

    nightly: Annotated[str, BeforeValidator(_cron)] = "0 3 * * *"
    """Cron expression of the nightly run that updates all sources."""
    timezone: Annotated[str, AfterValidator(_timezone)] = "UTC"
    """Time zone of the schedule."""
    verify: Weekday | Literal["never"] = "sunday"
    """The night in which docindex reads every file and compares every stored row, or `never`."""
    remote_interval_s: int = Field(default=300, ge=30)
    """Polling interval for the remotes of followed repositories, in seconds."""
    max_age_hours: int = Field(default=26, ge=1)
    """A source that was not checked for longer is reported."""


class AccessSettings(_Section):
    """Read access to `DOCINDEX_HOME`, in addition to its owner's."""

    group: Annotated[bool, Privileged(unless=[False])] = False
    """Let the group of `DOCINDEX_HOME` read the index."""


def _token(value: SecretStr) -> SecretStr:
    text = value.get_secret_value()
    if len(text) < _MIN_TOKEN_CHARS or not (text.isascii() and text.isprintable()) or " " in text:
        raise ValueError(f"must be at least {_MIN_TOKEN_CHARS} ASCII characters without spaces")
    return value


class ServeSettings(_Section):
    """The HTTP server, `docindex serve`."""

    hosts: Annotated[tuple[str, ...], Privileged()] = ()
    """More host names that clients may use, such as the name of a reverse proxy."""
    concurrency: int = Field(default=64, ge=1, le=10_000)
    """Concurrent requests. Others get an error that asks them to retry."""
    max_body_bytes: int = Field(default=1 << 20, ge=1024, le=64 << 20)
    """Maximum size of a request's body."""
    queue: int = Field(default=50, ge=1, le=10_000)
    """Maximum number of queued jobs."""
    trace_texts: Annotated[bool, Privileged(unless=[False])] = False
    """Include the text of queries, and the paths and query strings of URLs, in traces."""
    token: Annotated[SecretStr, AfterValidator(_token)] | None = None
    """The token that clients must send, only from `DOCINDEX_SERVE__TOKEN`. Default: the token in `serve.token` in the
    home."""


class MemorySettings(_Section):
    """Limits and retention of the messages that agents write to domains."""

    domain: str = Field(default="memory/main", min_length=1)
    """Default domain of `docindex memory`."""
    message_bytes: int = Field(default=256 << 10, ge=1024, le=16 << 20)
    """Maximum size of a message's text in UTF-8."""
    per_second: int = Field(default=20, ge=1, le=10_000)
    """Messages per second that a process may write, and the size of a burst."""
    quota_bytes: int = Field(default=1 << 30, ge=1 << 20)
    """Maximum size of a domain, including everything derived from its messages."""
    retention_days: int | None = Field(default=None, ge=1)
    """Days after which messages are no longer found. The next fold deletes them. Default: keep them."""
    fold_messages: int = Field(default=200, ge=1, le=100_000)
    """Number of messages in the log that starts a fold."""
    fold_minutes: float = Field(default=10, gt=0, le=10_080)
    """Age of the oldest message in the log that starts a fold."""
    chunker: str = Field(default="messages", min_length=1)
    """The chunker of messages."""
    decay: float = Field(default=0, ge=0, le=0.1)
    """The largest share of its score that an old message loses. It loses half of that after a year."""
    concepts: Annotated[str, _one_of(_EXTRACTORS, plugins.EXTRACTORS)] = "patterns"
    """The extractor of concepts from messages, as in `graph.concepts`."""


class RetentionSettings(_Section):
    """Retention of runs and events in Dagster's storage; the newest of each partition is always kept."""

    # Where projects share an instance of Dagster, this deletes runs of the others as well.
    days: Annotated[int, Privileged(least=30)] = Field(default=30, ge=1)
    """Days for which Dagster's runs and events are kept. The newest of each partition stay."""


def _secret_url(value: SecretStr) -> SecretStr:
    _http(value.get_secret_value())
    return value


class AlertSettings(_Section):
    """Alerts about failed runs."""

    webhook: Annotated[SecretStr, AfterValidator(_secret_url)] | None = None
    """URL to which failed runs are posted, only from `DOCINDEX_ALERTS__WEBHOOK`."""


class _Environment(EnvSettingsSource):
    """Environment variables for all settings except the root, which is already known and determines the file."""

    def __call__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__call__().items() if name != "root"}


def _bucket(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in _BUCKETS or not parts.hostname:
        raise ValueError(f"must have the form 's3://BUCKET/PREFIX'; supported schemes: {', '.join(_BUCKETS)}")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ValueError("must contain only a bucket and a prefix; set keys in variables such as AWS_ACCESS_KEY_ID")
    return value.rstrip("/")


class StorageSettings(_Section):
    """Object store that machines share. Without a URL, there is only one machine, which stores everything locally."""

    url: Annotated[str, AfterValidator(_bucket)] | None = None
    """Object store that machines share: `s3://BUCKET/PREFIX`, `gs://` or `az://`. Keys and endpoint come from the
    environment, for example `AWS_ACCESS_KEY_ID` and `AWS_ENDPOINT_URL`."""
    cells: int = Field(default=1, ge=1, le=1)
    """Always 1. Earlier versions could split the index."""


class Settings(BaseSettings):
    """All settings of one project."""

    model_config = SettingsConfigDict(
        env_prefix="DOCINDEX_",
        env_nested_delimiter="__",
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,  # the input may be a URL with a password, and tracebacks end up in logs
        nested_model_default_partial_update=True,
    )

    root: Path  # the folder of docindex.toml; base of relative paths
    home: Path = Path(HOME_NAME)
    source: tuple[SourceSettings, ...] = ()
    discovery: DiscoverySettings = DiscoverySettings()
    chunking: ChunkingSettings = ChunkingSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    llm: LLMSettings = LLMSettings()
    summaries: SummarySettings = SummarySettings()
    history: HistorySettings = HistorySettings()
    graph: GraphSettings = GraphSettings()
    search: SearchSettings = SearchSettings()
    rerank: RerankSettings = RerankSettings()
    evaluation: EvaluationSettings = EvaluationSettings()
    schedule: ScheduleSettings = ScheduleSettings()
    memory: Annotated[MemorySettings, Privileged()] = MemorySettings()
    retention: RetentionSettings = RetentionSettings()
    alerts: AlertSettings = AlertSettings()
    serve: ServeSettings = ServeSettings()
    access: AccessSettings = AccessSettings()
    storage: Annotated[StorageSettings, Privileged()] = StorageSettings()

    _ignored: tuple[Privilege, ...] = PrivateAttr(default=())
    _granted: frozenset[tuple[str, str]] | None = PrivateAttr(default=None)

    @field_validator("summaries")
    @classmethod
    def _summaries_require_an_llm(cls, value: SummarySettings, info: ValidationInfo) -> SummarySettings:
        llm = info.data.get("llm")
        if value.enabled and llm is not None and llm.provider == "none":
            raise ValueError("enabled = true requires llm.provider and llm.model; see docs/how-to/summarize-chunks.md")
        if value.enabled and llm is not None and llm.provider == "codex":
            raise ValueError("enabled = true does not support llm.provider = 'codex', which starts a process per chunk")
        return value

    @model_validator(mode="after")
    def _make_home_absolute(self) -> Self:
        object.__setattr__(self, "home", (self.root / self.home.expanduser()).absolute())
        return self

    @model_validator(mode="after")
    def _make_model_folder_absolute(self) -> Self:
        model = self.embedding.model
        if model is not None and model.startswith(("/", "./", "../", "~/")):
            folder = os.path.normpath(self.root / Path(model).expanduser())
            object.__setattr__(self, "embedding", self.embedding.model_copy(update={"model": folder}))
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003 pydantic passes it by name
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 pydantic passes it by name
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 pydantic passes it by name
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Give the environment precedence over the file, whose values arrive as init arguments."""
        return _Environment(settings_cls), init_settings

    @property
    def config_file(self) -> Path:
        """The path of `docindex.toml`; the file may not exist yet."""
        return self.root / CONFIG_NAME

    @property
    def ignored(self) -> tuple[Privilege, ...]:
        """The privileges that the project requests but the user has not granted."""
        return self._ignored

    def granted_to(self, place: str) -> frozenset[str] | None:
        """Return the folders outside the project granted to the `[[source]]` table at `place`; None for all."""
        return None if self._granted is None else frozenset(folder for at, folder in self._granted if at == place)

    def confines(self, place: str, real: Path) -> bool:
        """Return whether the source that a `[[source]]` table declares at `place` must not read the folder `real`."""
        is_granted = self._granted is None or (place, str(real)) in self._granted
        return not (is_granted or real.is_relative_to(self.root.resolve()))


def untrusted_message(settings: Settings) -> str:
    """Return a message about the privileges that docindex ignores, and how to trust the project; empty if none."""
    if not settings.ignored:
        return ""
    names = ", ".join(
        f"{privilege.name} {scrub(privilege.value)}" if privilege.name == "source" else privilege.name
        for privilege in settings.ignored
    )
    review = command("docindex", "trust", settings.root)
    return f"{settings.root} is not trusted, so docindex ignores: {names}; review with {review}"


def find_root(start: Path | None = None) -> Path:
    """Return the nearest folder from `start` upwards with a `docindex.toml`, else `start` itself.

    `start` defaults to `DOCINDEX_ROOT`, else to the working directory. The search stops below the folders listed in
    `DOCINDEX_CEILING_DIRECTORIES`, except that it always checks `start`.
    """
    start = (start or Path(os.environ.get("DOCINDEX_ROOT") or Path.cwd())).absolute()
    ceilings = {Path(name) for name in os.environ.get("DOCINDEX_CEILING_DIRECTORIES", "").split(os.pathsep)}
    above = takewhile(lambda folder: folder not in ceilings, start.parents)
    return next((folder for folder in (start, *above) if (folder / CONFIG_NAME).is_file()), start)


def load_settings(root: Path | None = None) -> Settings:
    """Read the settings of the project at `root` (default: found from the working directory).

    Values that need trust which the user has not granted are left out; `Settings.ignored` lists them.

    Raises:
        SettingsError: The file is invalid TOML, or a key or value is invalid. The message names the file, the key and
            the allowed values.
        OwnershipError: The project or its home belongs to another user, or other users can write to it.
        LinkError: The home is a symlink.
    """
    root = find_root() if root is None else root.absolute()
    file = root / CONFIG_NAME
    trusted = trust_in(root)
    try:
        text = _read_config(root, trusted)
        requested = () if trusted.is_full else privileges_of(Settings, root, _parse_toml(text))
        ignored = tuple(privilege for privilege in requested if privilege.digest not in trusted.granted)
        granted = None if trusted.is_full else granted_folders(root, _parse_toml(text), {*requested} - {*ignored})
        settings = _parse_settings(root, text, frozenset(os.environ.items()), ignored, granted)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError, OSError) as error:
        raise SettingsError(f"cannot read {file}: {error}") from error
    return _with_safe_home(settings, trusted)


def _read_config(root: Path, trusted: Trust) -> str:
    file = root / CONFIG_NAME
    if file.is_symlink() and not (trusted.is_full or trusted.grants(link_privilege(file))):
        trusting = command("docindex", "trust", root)
        raise OwnershipError(f"{file} is a symbolic link to {real_path(file)}; if you created it, run {trusting}")
    if not file.is_file():
        return ""
    if not trusted.is_full:
        check_owner(root, trusted.owner)
        check_owner(file, trusted.owner)
    return (read_limited(file) or b"").decode()


@lru_cache(_MAX_CACHED)
def _parse_toml(text: str) -> dict[str, Any]:
    """Parse the text of a file; callers must not modify the result."""
    return tomllib.loads(text)


@lru_cache(_MAX_CACHED)
def _parse_settings(
    root: Path,
    text: str,
    environment: frozenset[tuple[str, str]],  # noqa: ARG001 part of the cache key
    ignored: tuple[Privilege, ...],
    granted: frozenset[tuple[str, str]] | None,
) -> Settings:
    """Build the settings from the text of a file and the environment; cached, since a run loads them repeatedly."""
    settings = check_settings(root, without_ignored(Settings, root, _parse_toml(text), ignored))
    settings._ignored, settings._granted = ignored, granted  # noqa: SLF001 our own
    return settings


def _with_safe_home(settings: Settings, trusted: Trust) -> Settings:
    """Return the settings with a home that docindex may open."""
    home, root, ignored = settings.home, settings.root, settings.ignored
    if not trusted.is_full and is_inside(root, home):
        check_owner(home, trusted.owner)
        if home.is_symlink() and not trusted.grants(link := link_privilege(home)):
            ignored = (*ignored, link)
        if ignored:
            cached = settings.model_copy(update={"home": untrusted_home(root)})
            cached._ignored = ignored  # noqa: SLF001 our own
            return cached
    opened = own_home(root, home, trusted)
    return settings if opened == home else settings.model_copy(update={"home": opened})


def own_home(root: Path, home: Path, given: Trust) -> Path:
    """Return the folder of a project's index.

    If `home` is inside the project, the index is in a subfolder whose name only this user can derive. With full trust,
    the index is in `home` itself, unless the subfolder exists. So a command with `--trust` finds the same index.

    Args:
        root: The project's folder.
        home: The home from the settings.
        given: The trust that the user has granted to the project.

    Raises:
        LinkError: The subfolder, or a folder between it and the project, is a symlink that the user has not approved.
        OwnershipError: The folder belongs to another user, or other users can write to it.
        SettingsError: The secret for the name cannot be stored, or the trust store is damaged.
    """
    if not is_inside(root, home):  # the user chose it
        if not given.is_full:
            check_owner(home, trust_in(home).owner)
        return home
    _check_links(root, home.parent)
    if given.owner not in {None, os.geteuid()} and (theirs := _home_of(given.owner, home)) is not None:
        return theirs
    name = trust.hidden_name(root, make=not given.is_full)
    if name is None or home.name == name:  # a job's environment variables point to the subfolder itself
        _check_links(root, home)
        return home
    if home.is_symlink():  # the user has approved its current target; a pull may change it
        home = real_path(home)
    hidden = home / name
    confinement.check_path(home, hidden)
    if given.is_full:
        return hidden if hidden.is_dir() else home
    check_owner(hidden, given.owner)
    return hidden


def check_home(settings: Settings) -> None:
    """Check the path from a project to its home again before a write, since a pull may have added a symlink.

    Raises:
        LinkError: The path contains a symlink that the user has not approved.
    """
    _check_links(settings.root, settings.home)


def _check_links(root: Path, home: Path) -> None:
    relative = home.relative_to(root) if home.is_relative_to(root) else Path()
    for link in (root / folder for folder in (relative, *relative.parents)):
        if link == root or not link.is_symlink():
            continue
        trusted = trust_in(root)
        if not (trusted.is_full or trusted.grants(link_privilege(link))):
            raise LinkError(
                f"{link} is a symbolic link to {real_path(link)}; remove it, or set DOCINDEX_HOME to the intended path"
            )


def is_inside(root: Path, home: Path) -> bool:
    """Return whether a home is inside a project, before or after resolving symlinks, so a checkout can contain it."""
    return any(Path(path(home)).is_relative_to(path(root)) for path in (os.path.normpath, os.path.realpath))


def _home_of(owner: int | None, home: Path) -> Path | None:
    """Return the home of a project's other owner: the newest one, since its name depends on that user's secret.

    None if there is none, or if git tracks files in it, because then anyone who can push could change it.
    """
    if not home.is_dir() or is_tracked(home):
        return None
    try:
        hidden = [folder for folder in confinement.entries(home, home) if confinement.HIDDEN.fullmatch(folder.name)]
        found = [(folder.lstat(), folder) for folder in hidden]
    except OSError:  # the code that opens the home reports the error
        found = []
    theirs = [(status.st_mtime_ns, folder) for status, folder in found if _is_folder_of(owner, status)]
    if theirs:
        return max(theirs)[1]
    return home if home.stat().st_uid == owner else None


def _is_folder_of(owner: int | None, status: os.stat_result) -> bool:
    return stat.S_ISDIR(status.st_mode) and status.st_uid == owner


def link_privilege(link: Path) -> Privilege:
    """Return the privilege for a home or `docindex.toml` that is a symlink: docindex would write to its target."""
    return Privilege.of(link.name, f"a link to {real_path(link)}")


def requested_privileges(root: Path, values: Mapping[str, Any]) -> list[Privilege]:
    """List what the files of the project at `root` ask for, if its `docindex.toml` has these values.

    Raises:
        SettingsError: One of the files is too large.
    """
    links = [link_privilege(link) for link in (root / CONFIG_NAME, root / HOME_NAME) if link.is_symlink()]
    return [*privileges_of(Settings, root, values), *environment_privileges(root), *links]


def untrusted_home(root: Path) -> Path:
    """Return the folder for the index of a project that the user does not trust."""
    return trust.cache() / "untrusted" / digest(os.fsencode(root))


def check_settings(root: Path, values: dict[str, Any]) -> Settings:
    """Return the settings from the values of a file at `root`, overridden by the environment.

    Raises:
        SettingsError: A key or value is invalid. The message names the file, the key and the allowed values.
    """
    file = root / CONFIG_NAME
    # pydantic-settings accepts some arguments that are not settings, such as `_cli_parse_args`.
    if unknown := values.keys() - Settings.model_fields.keys():
        raise SettingsError(f"{file}: unknown setting {min(unknown)}; see docs/reference/settings.md")
    for reserved in ("root", "home"):
        if reserved in values:
            raise SettingsError(f"{file}: {reserved} cannot be set in the file; set DOCINDEX_HOME to move the index")
    for section, name in _SECRETS:
        if _is_in(values, (section, name)):
            variable = f"DOCINDEX_{section}__{name}".upper()
            raise SettingsError(f"{file}: {section}.{name} is a secret; set {variable} instead")
    try:
        return Settings(root=root, **values)
    except ValidationError as error:
        raise SettingsError("\n".join(_explain(file, values, item) for item in error.errors())) from error
    except EnvironmentSettingsError as error:
        raise SettingsError(f"invalid DOCINDEX_* variable: {first_line(error)}") from error


def _explain(file: Path, values: dict[str, Any], item: Any) -> str:
    """Return one line for an invalid setting: its location, the problem, and the value."""
    location = [str(part) for part in item["loc"]]
    in_file = _is_in(values, item["loc"])
    variable = "DOCINDEX_" + "__".join(location).upper()
    prefix = f"{file}: " if in_file or variable not in os.environ else ""
    setting = ".".join(location) if prefix else variable
    if item["type"] == "extra_forbidden":
        return f"{prefix}unknown setting {setting}; see docs/reference/settings.md"
    value = "" if item["type"] in {"missing", "value_error"} else f" (got {scrub(repr(item['input']))})"
    message = item["msg"].removeprefix("Value error, ")
    return f"{prefix}{setting}: {message}{value}"


def _is_in(values: Any, location: tuple[int | str, ...]) -> bool:
    for part in location:
        try:
            values = values[part]
        except (KeyError, IndexError, TypeError):
            return False
    return True
