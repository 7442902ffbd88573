"""One typed `Settings`: `docindex.toml`, found upwards from the working directory, under `DOCINDEX_*` variables.

`DOCINDEX_SECTION__NAME` sets any value (`DOCINDEX_SEARCH__TOP_K=20`), `DOCINDEX_HOME` says where the index lives.
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
    without,
)
from docindex_dagster.core.safe_text import command
from docindex_dagster.core.trust import Privilege, Trust, check_owner, trust_in
from docindex_dagster.core.urls import check_url, scrub

CONFIG_NAME = "docindex.toml"
HOME_NAME = ".docindex"
_SOURCE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
# What git refuses in the name of a branch or tag.
_NO_REVISION = re.compile(r"^[-/.]|[\x00-\x20\x7f~^:?*\[\\]|\.\.|//|@\{|/\.|\.lock(/|$)|[/.]$|^@?$")
# They come from the environment alone.
_SECRETS = (
    ("alerts", "webhook"),
    *((section, "api_key") for section in ("embedding", "llm", "rerank")),
    ("serve", "token"),
)
# What docindex has to choose from; packages offer more.
_EMBEDDERS = ("static", "openai", "minilm", "sentence-transformers")
_LLMS = ("none", "openai", "anthropic", "ollama", "codex")
_EXTRACTORS = ("patterns", "spacy", "llm", "none")
_RERANKERS = ("none", "mmr", "cross-encoder", "remote")
# Those of them that neither send texts nor load a model that the file names.
_LOCAL_EMBEDDERS = ("static",)
_LOCAL_EXTRACTORS = ("patterns", "spacy", "none")
_LOCAL_RERANKERS = ("none", "mmr")
_CHUNKERS = ("code", "markdown", "mdx", "rst", "html", "text", "notebook", "asciidoc", "pdf", "lines", "messages")
_SHORTEST_TOKEN = 16
_BUCKETS = ("s3", "gs", "az")  # schemes of object stores that put on a condition
_MOST_PARSED = 8  # settings that are remembered, of one project or another
_CRON = re.compile(r"^\s*\S+(\s+\S+){4}\s*$")


def is_parent_of_libraries(path: str) -> bool:
    """Whether a path declares each child of a folder as a library."""
    return LIBRARY_PLACEHOLDER in path and Path(path).name == LIBRARY_PLACEHOLDER  # the first is quick, and mostly no


def _path(value: str) -> str:
    if "\0" in value:
        raise ValueError("holds a NUL character")
    try:
        Path(value).expanduser()
    except RuntimeError as error:
        raise ValueError(f"names a home folder that there is not: {value}") from error
    return value


def _url(value: str) -> str:
    # The URL is not repeated: it may hold what is secret.
    return check_url(value)


def _revision(value: str) -> str:
    if _NO_REVISION.search(value) or not value.isprintable():
        raise ValueError("must be the name of a branch or tag, or the id of a commit")
    return value


def _name(value: str) -> str:
    name, at, label = value.partition("@")
    if not _SOURCE_NAME.fullmatch(name):
        raise ValueError("must be letters, digits, '.', '_' and '-', and begin with a letter or digit")
    if at:
        _revision(label)
    return value


def _cron(value: object) -> object:
    if isinstance(value, str) and not _CRON.match(value):
        raise ValueError("must be a cron expression of five fields, such as '0 3 * * *'")
    return value


def _timezone(value: str) -> str:
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise ValueError("must be a time zone of the IANA database, such as 'Europe/Berlin'") from error
    return value


def _http(value: str) -> str:
    try:
        has_host = bool(urlsplit(value).hostname)
    except ValueError:
        has_host = False
    if not has_host or not value.startswith(("https://", "http://")):
        raise ValueError("must be an http or https URL")
    return value


def _endpoint(value: str) -> str:
    parts = urlsplit(_http(value))
    if "@" in parts.netloc:
        raise ValueError("holds a user name or password, which would be logged; set DOCINDEX_EMBEDDING__API_KEY")
    if parts.query or parts.fragment:
        raise ValueError("must end with a path, as 'http://127.0.0.1:11434/v1'")
    return value


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class SourceSettings(_Section):
    """One `[[source]]` table."""

    kind: Literal["library", "git"]
    path: Annotated[str, AfterValidator(_path)] | None = None
    url: Annotated[str, AfterValidator(_url)] | None = None
    branch: Annotated[str, AfterValidator(_revision)] | None = None
    branches: tuple[Annotated[str, AfterValidator(_revision)], ...] = ()
    submodules: bool = False
    name: Annotated[str, AfterValidator(_name)] | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    recursive: bool = True
    include_code: bool = True
    untracked: bool = True
    version: str | None = None

    @property
    def declares_children(self) -> bool:
        """Whether each child of a folder is a library."""
        return self.path is not None and is_parent_of_libraries(self.path)

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.path is None) is (self.url is None):
            both = "" if self.path is None else ", not both"
            raise ValueError(f"must have {'path' if self.kind == 'library' else 'path or url'}{both}")
        return self

    @model_validator(mode="after")
    def _git_keys_only_in_git(self) -> Self:
        given = [key for key in ("url", "branch", "branches", "submodules") if getattr(self, key)]
        if self.kind == "library" and given:
            raise ValueError(f"{given[0]} needs kind = 'git'")
        if self.kind == "library" and "@" in (self.name or ""):
            raise ValueError("'@' in name needs kind = 'git': it stands between a repository and its branch")
        return self

    @model_validator(mode="after")
    def _labels_name_one_work_tree(self) -> Self:
        if "@" in (self.name or "") and (self.url or self.branch or self.branches):
            raise ValueError("NAME@LABEL in name is for a further work tree, by path alone; use branches for branches")
        return self

    @model_validator(mode="after")
    def _each_branch_once(self) -> Self:
        if len({self.branch, *self.branches}) <= len(self.branches):
            raise ValueError("branches must name each branch once, and not the one that branch names")
        return self

    @model_validator(mode="after")
    def _placeholder_only_in_libraries(self) -> Self:
        if self.path is None or LIBRARY_PLACEHOLDER not in self.path:
            return self
        if self.kind != "library" or self.name is not None:
            raise ValueError(
                f"{LIBRARY_PLACEHOLDER} in path needs kind = 'library' and no name: each child gives its own"
            )
        if not self.declares_children:
            raise ValueError(f"{LIBRARY_PLACEHOLDER} must be the last part of path")
        return self


class DiscoverySettings(_Section):
    """Which files are taken at all."""

    max_file_bytes: int = Field(default=1 << 20, ge=1, le=16 << 20)  # one of 16 MiB takes 0.6 to 1.6 GB
    secrets: Annotated[Literal["skip", "index"], Privileged(unless=["skip"])] = "skip"


def _file_glob(value: str) -> str:
    if not value.strip() or value.startswith(("!", "#")) or value.endswith("/") or "\n" in value:
        raise ValueError("must be a glob for files, as '*.feature' or 'notes/**'")
    return value


class ChunkingSettings(_Section):
    """Sizes of chunks: documents in tokens, code in characters that are not white space."""

    target_tokens: int = Field(default=512, ge=16)
    overlap_tokens: int = Field(default=50, ge=0)
    max_tokens: int = Field(default=2048, ge=32)
    min_tokens: int = Field(default=128, ge=0)
    code_chars: int = Field(default=1500, ge=100)
    parse_timeout_s: float = Field(default=10, gt=0)
    workers: int = Field(default=0, ge=0, le=64)  # 0: one a core, at most four
    # By globs; the last that matches decides.
    chunkers: Annotated[dict[Annotated[str, AfterValidator(_file_glob)], str], Privileged(unless=_CHUNKERS)] = {}

    @model_validator(mode="after")
    def _sizes_are_ordered(self) -> Self:
        if not self.min_tokens < self.target_tokens <= self.max_tokens:
            raise ValueError("must hold: min_tokens < target_tokens <= max_tokens")
        if self.overlap_tokens * 2 > self.target_tokens:
            raise ValueError("overlap_tokens must be at most half of target_tokens")
        return self


def _one_of(ours: tuple[str, ...], group: str) -> AfterValidator:
    """A name of ours, or one that a package offers in an entry-point group."""

    def check(value: str) -> str:
        if value not in ours and value not in (others := plugins.offered(group)):
            names = ", ".join(repr(name) for name in (*ours, *others))
            raise ValueError(f"there is no {value!r}; must be one of {names}, or what a further package offers")
        return value

    return AfterValidator(check)


class EmbeddingSettings(_Section):
    """Which model turns text into vectors. What a provider has no use for, it does not look at."""

    provider: Annotated[str, _one_of(_EMBEDDERS, plugins.EMBEDDERS), Privileged(unless=_LOCAL_EMBEDDERS)] = "static"
    # A name that the provider knows, or the path of a folder, which begins with "/", "./", "../" or "~/".
    model: Annotated[Annotated[str, AfterValidator(_path)] | None, Privileged()] = None
    dimensions: int | None = Field(default=None, ge=2, le=65_536)  # values of a vector, where the model offers a choice
    device: str | None = None  # sentence-transformers: as torch names it; default: the fastest
    # openai: of another endpoint that speaks its API
    base_url: Annotated[Annotated[str, AfterValidator(_endpoint)] | None, Privileged()] = None
    batch_size: int | None = Field(default=None, ge=1, le=10_000)  # texts that are embedded together
    concurrency: int = Field(default=4, ge=1, le=64)  # openai: requests at once
    timeout_s: float = Field(default=60, gt=0, le=3600)  # openai: for one answer
    retries: int = Field(default=6, ge=0, le=100)  # openai: of one request, with longer and longer waits between
    requests_per_minute: int | None = Field(default=None, ge=1)
    tokens_per_minute: int | None = Field(default=None, ge=1)
    price: float | None = Field(default=None, ge=0)  # of a million tokens, in dollars; known for OpenAI's models
    # A secret, from the environment alone.
    api_key: SecretStr | None = None


class LLMSettings(_Section):
    """Which language model is asked, where something asks one."""

    provider: Annotated[str, _one_of(_LLMS, plugins.LLMS), Privileged(unless=["none"])] = "none"
    model: Annotated[str | None, Field(min_length=1), Privileged()] = None
    # Of another endpoint that speaks the provider's API.
    base_url: Annotated[Annotated[str, AfterValidator(_http)] | None, Privileged()] = None
    timeout_s: float = Field(default=60, gt=0, le=3600)  # for one answer, and so for its first word
    retries: int = Field(default=3, ge=0, le=100)  # of one request, with longer and longer waits between
    concurrency: int = Field(default=4, ge=1, le=64)  # requests at once
    context_tokens: int | None = Field(default=None, ge=1024)  # the model's window; ollama makes it as large
    max_answer_tokens: int = Field(default=1500, ge=16)
    # That a question may cost, with all that its answer looks up.
    question_tokens: Annotated[int, Privileged(most=200_000)] = Field(default=200_000, ge=0)
    question_dollars: float | None = Field(default=None, ge=0)  # that it may cost, by the two prices
    price_in: float | None = Field(default=None, ge=0)  # of a million tokens that are sent, in dollars
    price_out: float | None = Field(default=None, ge=0)  # of a million tokens that are answered, in dollars
    # A secret, from the environment alone.
    api_key: SecretStr | None = None

    @model_validator(mode="after")
    def _ours_need_a_model(self) -> Self:
        if self.provider in {"openai", "anthropic", "ollama"} and self.model is None:
            raise ValueError(f"llm.model must name a model, as provider = {self.provider!r} offers many")
        return self

    @model_validator(mode="after")
    def _money_needs_prices(self) -> Self:
        if self.question_dollars is not None and (self.price_in is None or self.price_out is None):
            raise ValueError("llm.question_dollars needs llm.price_in and llm.price_out, in dollars a million tokens")
        return self


class SummarySettings(_Section):
    """Summaries of chunks, which the language model writes."""

    enabled: Annotated[bool, Privileged(unless=[False])] = False
    max_tokens: int = Field(default=120, ge=16, le=1000)  # of a summary
    # Of a run of a source, in and out.
    budget_tokens: Annotated[int, Privileged(most=1_000_000)] = Field(default=1_000_000, ge=0)
    min_chars: int = Field(default=200, ge=0)  # a shorter chunk says itself what it is
    source_types: tuple[Literal["doc", "code", "test", "config"], ...] = ("doc", "code")


class HistorySettings(_Section):
    """How much of the history of a git source is searchable."""

    commits: int = Field(default=500, ge=0, le=100_000)  # the newest ones; 0: none


class GraphSettings(_Section):
    """What goes into the knowledge graph."""

    enabled: bool = True
    code: bool = True  # what code defines, imports and calls
    # Who finds them in documents.
    concepts: Annotated[str, _one_of(_EXTRACTORS, plugins.EXTRACTORS), Privileged(unless=_LOCAL_EXTRACTORS)] = (
        "patterns"
    )
    max_triples_per_chunk: int = Field(default=10, ge=1, le=100)  # relations between concepts, and as many concepts
    file_timeout_s: float = Field(default=60, gt=0, le=3600)  # for the edges of one file
    timeout_s: float = Field(default=600, gt=0, le=86_400)  # for those of all files of a source


class SearchSettings(_Section):
    """Defaults of a search."""

    top_k: int = Field(default=10, ge=1, le=1000)
    candidates: int = Field(default=100, ge=1, le=10_000)  # taken from each retriever before fusion
    default_source: str | None = None
    look_s: float = Field(default=0.05, ge=0, le=60)  # for looking whether sources have changed since; 0: not


class RerankSettings(_Section):
    """What looks at the best results once more."""

    provider: Annotated[str, _one_of(_RERANKERS, plugins.RERANKERS), Privileged(unless=_LOCAL_RERANKERS)] = "none"
    candidates: int = Field(default=50, ge=2, le=1000)  # how many of the best it looks at
    weight: float = Field(default=0.5, ge=0, le=1)  # of its opinion, beside the score of the search
    relevance: float = Field(default=0.5, ge=0, le=1)  # mmr: against variety; the lambda of the paper
    model: Annotated[str | None, Privileged()] = None  # of cross-encoder and remote
    # remote: where to post, with its path
    url: Annotated[Annotated[str, AfterValidator(_http)] | None, Privileged()] = None
    timeout_s: float = Field(default=5, gt=0, le=600)  # remote: for the whole answer
    # A secret, from the environment alone.
    api_key: SecretStr | None = None

    @model_validator(mode="after")
    def _remote_has_a_place(self) -> Self:
        if self.provider == "remote" and self.url is None:
            raise ValueError("rerank.url must say where to post, as 'https://api.cohere.com/v2/rerank'")
        return self


class EvaluationSettings(_Section):
    """How each night finds out how good searches are, and whether questions are collected for it."""

    questions: int = Field(default=100, ge=0, le=10_000)  # of each source; 0: none, and no night evaluates
    commits: int = Field(default=1000, ge=1, le=100_000)  # the newest ones, of which the questions are made
    # Questions of the user's, .csv or .jsonl, asked as well.
    file: Annotated[Annotated[str, AfterValidator(_path)] | None, Privileged()] = None
    collect: bool = False  # whether the page, the API and agents may note which place answered a question


Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]


class ScheduleSettings(_Section):
    """When everything is indexed again, and how often remotes are asked for news."""

    nightly: Annotated[str, BeforeValidator(_cron)] = "0 3 * * *"
    timezone: Annotated[str, AfterValidator(_timezone)] = "UTC"
    verify: Weekday | Literal["never"] = "sunday"  # the night in which every file is read and every row compared
    remote_interval_s: int = Field(default=300, ge=30)  # how often the remote of a followed repository is asked
    max_age_hours: int = Field(default=26, ge=1)  # a source that was not looked at for longer is reported


class AccessSettings(_Section):
    """Who may read what lies below `DOCINDEX_HOME`, beside its user."""

    group: Annotated[bool, Privileged(unless=[False])] = False  # the home's group


def _token(value: SecretStr) -> SecretStr:
    text = value.get_secret_value()
    if len(text) < _SHORTEST_TOKEN or not (text.isascii() and text.isprintable()) or " " in text:
        raise ValueError(f"must be at least {_SHORTEST_TOKEN} characters of ASCII without spaces")
    return value


class ServeSettings(_Section):
    """The HTTP server, `docindex serve`."""

    # Further names by which clients may call it, as those of a reverse proxy.
    hosts: Annotated[tuple[str, ...], Privileged()] = ()
    concurrency: int = Field(default=64, ge=1, le=10_000)  # requests at once; more are asked to come again
    max_body_bytes: int = Field(default=1 << 20, ge=1024, le=64 << 20)  # of a request
    queue: int = Field(default=50, ge=1, le=10_000)  # jobs that wait
    # Whether traces hold what users ask for, and the paths and queries of addresses.
    trace_texts: Annotated[bool, Privileged(unless=[False])] = False
    # A secret, from the environment alone.
    token: Annotated[SecretStr, AfterValidator(_token)] | None = None


class MemorySettings(_Section):
    """What agents may write into a domain, and how long it stays."""

    domain: str = Field(default="memory/main", min_length=1)  # that `docindex memory` means where none is named
    message_bytes: int = Field(default=256 << 10, ge=1024, le=16 << 20)  # of a message's text in UTF-8
    per_second: int = Field(default=20, ge=1, le=10_000)  # messages of a process
    quota_bytes: int = Field(default=1 << 30, ge=1 << 20)  # of a domain, with all that is made of it
    retention_days: int | None = Field(default=None, ge=1)  # None: messages stay
    fold_messages: int = Field(default=200, ge=1, le=100_000)  # that wait in the log until they are folded
    fold_minutes: float = Field(default=10, gt=0, le=10_080)  # for which the oldest of them waits at most
    chunker: str = Field(default="messages", min_length=1)  # who cuts messages
    decay: float = Field(default=0, ge=0, le=0.1)  # the share of its score that an old message loses at most
    concepts: Annotated[str, _one_of(_EXTRACTORS, plugins.EXTRACTORS)] = "patterns"  # who finds them in messages


class RetentionSettings(_Section):
    """How long Dagster's record of runs and events is kept; the newest of each partition always stays."""

    # Where projects share an instance of Dagster, this deletes runs of the others as well.
    days: Annotated[int, Privileged(least=30)] = Field(default=30, ge=1)


def _secret_url(value: SecretStr) -> SecretStr:
    _http(value.get_secret_value())
    return value


class AlertSettings(_Section):
    """Where failures of runs are reported."""

    # A secret: who knows it can post. It comes from the environment alone.
    webhook: Annotated[SecretStr, AfterValidator(_secret_url)] | None = None


class _Environment(EnvSettingsSource):
    """Variables for everything but the root, which decides what file is read and is known before."""

    def __call__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__call__().items() if name != "root"}


def _bucket(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in _BUCKETS or not parts.hostname:
        raise ValueError(f"must be a bucket and a prefix, as 's3://BUCKET/PREFIX'; schemes: {', '.join(_BUCKETS)}")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ValueError("must be a bucket and a prefix alone: keys come from the environment, as AWS_ACCESS_KEY_ID")
    return value.rstrip("/")


class StorageSettings(_Section):
    """Where machines share tables and stores; without a URL there is one machine, and its disk holds everything."""

    url: Annotated[str, AfterValidator(_bucket)] | None = None
    # Earlier versions could split the index; files that set the number to 1 still load.
    cells: int = Field(default=1, ge=1, le=1)


class Settings(BaseSettings):
    """All settings of one project."""

    model_config = SettingsConfigDict(
        env_prefix="DOCINDEX_",
        env_nested_delimiter="__",
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,  # it may be a URL with a password in it, and tracebacks go to logs
        nested_model_default_partial_update=True,
    )

    root: Path  # the folder of docindex.toml; relative paths start here
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
    def _a_model_writes_summaries(cls, value: SummarySettings, info: ValidationInfo) -> SummarySettings:
        llm = info.data.get("llm")
        if value.enabled and llm is not None and llm.provider == "none":
            raise ValueError("enabled = true needs llm.provider and llm.model; see docs/summaries.md")
        if value.enabled and llm is not None and llm.provider == "codex":
            raise ValueError("enabled = true needs another llm.provider: codex starts a program for each chunk")
        return value

    @model_validator(mode="after")
    def _home_is_absolute(self) -> Self:
        object.__setattr__(self, "home", (self.root / self.home.expanduser()).absolute())
        return self

    @model_validator(mode="after")
    def _folder_of_the_model_is_absolute(self) -> Self:
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
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003 pydantic gives it by name
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 pydantic gives it by name
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 pydantic gives it by name
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The environment wins over the file, whose values arrive as initial ones."""
        return _Environment(settings_cls), init_settings

    @property
    def config_file(self) -> Path:
        """The file that holds these settings; it may not exist yet."""
        return self.root / CONFIG_NAME

    @property
    def ignored(self) -> tuple[Privilege, ...]:
        """What the project asks for and does not get, since the user does not trust it."""
        return self._ignored

    def confines(self, place: str, real: Path) -> bool:
        """Whether the source that a `[[source]]` table declares at a place may not be read from the folder `real`."""
        is_granted = self._granted is None or (place, str(real)) in self._granted
        return not (is_granted or real.is_relative_to(self.root.resolve()))


def untrusted(settings: Settings) -> str:
    """Say what is ignored of a project, and how to trust it; empty if nothing is."""
    if not settings.ignored:
        return ""
    names = ", ".join(
        f"{privilege.name} {scrub(privilege.value)}" if privilege.name == "source" else privilege.name
        for privilege in settings.ignored
    )
    review = command("docindex", "trust", settings.root)
    return f"{settings.root} is not trusted, so docindex ignores: {names}; review with {review}"


def find_root(start: Path | None = None) -> Path:
    """The nearest folder from `start` upwards with a `docindex.toml`, else `start` itself.

    The default start is the folder that `DOCINDEX_ROOT` names, else the working directory. Above it, the folders that
    `DOCINDEX_CEILING_DIRECTORIES` names, and those around them, are not looked at.
    """
    start = (start or Path(os.environ.get("DOCINDEX_ROOT") or Path.cwd())).absolute()
    ceilings = {Path(name) for name in os.environ.get("DOCINDEX_CEILING_DIRECTORIES", "").split(os.pathsep)}
    above = takewhile(lambda folder: folder not in ceilings, start.parents)
    return next((folder for folder in (start, *above) if (folder / CONFIG_NAME).is_file()), start)


def load_settings(root: Path | None = None) -> Settings:
    """Read the settings of the project at `root` (default: found from the working directory).

    What needs the user's trust and does not have it is left out; `Settings.ignored` lists it.

    Raises:
        SettingsError: The file is not TOML, or a key or value is wrong; it names the file, the key and what is allowed.
        OwnershipError: The project or its home belongs to another user, or other users may write it.
        LinkError: The home is a symbolic link.
    """
    root = find_root() if root is None else root.absolute()
    file = root / CONFIG_NAME
    given = trust_in(root)
    try:
        text = _text_of(root, given)
        asked = () if given.is_full else privileges_of(Settings, root, _values(text))
        ignored = tuple(privilege for privilege in asked if privilege.digest not in given.granted)
        granted = None if given.is_full else granted_folders(root, _values(text), {*asked} - {*ignored})
        settings = _parsed(root, text, frozenset(os.environ.items()), ignored, granted)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError, OSError) as error:
        raise SettingsError(f"{file} cannot be read: {error}") from error
    return _at_home(settings, given)


def _text_of(root: Path, given: Trust) -> str:
    file = root / CONFIG_NAME
    if file.is_symlink() and not (given.is_full or given.grants(link_privilege(file))):
        trusting = command("docindex", "trust", root)
        raise OwnershipError(f"{file} is a link to {real_path(file)}; if you made it, run {trusting}")
    if not file.is_file():
        return ""
    if not given.is_full:
        check_owner(root, given.owner)
        check_owner(file, given.owner)
    return (read_limited(file) or b"").decode()


@lru_cache(_MOST_PARSED)
def _values(text: str) -> dict[str, Any]:
    """The content of a file, not to be changed."""
    return tomllib.loads(text)


@lru_cache(_MOST_PARSED)
def _parsed(
    root: Path,
    text: str,
    environment: frozenset[tuple[str, str]],  # noqa: ARG001 it is read
    ignored: tuple[Privilege, ...],
    granted: frozenset[tuple[str, str]] | None,
) -> Settings:
    """The settings that the text of a file gives in this environment; each part of a run asks for them."""
    settings = check_settings(root, without(Settings, root, _values(text), ignored))
    settings._ignored, settings._granted = ignored, granted  # noqa: SLF001 our own
    return settings


def _at_home(settings: Settings, given: Trust) -> Settings:
    """The settings with a home that docindex may open."""
    home, root, ignored = settings.home, settings.root, settings.ignored
    if not given.is_full and is_inside(root, home):
        check_owner(home, given.owner)
        if home.is_symlink() and not given.grants(link := link_privilege(home)):
            ignored = (*ignored, link)
        if ignored:
            cached = settings.model_copy(update={"home": untrusted_home(root)})
            cached._ignored = ignored  # noqa: SLF001 our own
            return cached
    opened = own_home(root, home, given)
    return settings if opened == home else settings.model_copy(update={"home": opened})


def own_home(root: Path, home: Path, given: Trust) -> Path:
    """Return the folder of a project's index.

    If `home` is inside the project, the index is in a subfolder whose name only this user can derive. With full trust,
    the index is in `home` itself, unless the subfolder exists: `--trust` for one command finds the same index.

    Args:
        root: The folder of the project.
        home: The folder that its settings name.
        given: What the user has granted to the project.

    Raises:
        LinkError: The subfolder, or a folder between it and the project, is a symbolic link, which the user has not
            agreed to.
        OwnershipError: It belongs to another user, or other users may write it.
        SettingsError: As `hidden_name`.
    """
    if not is_inside(root, home):  # the user chose it
        if not given.is_full:
            check_owner(home, trust_in(home).owner)
        return home
    _check_links(root, home.parent)
    if given.owner not in {None, os.geteuid()} and (theirs := _home_of(given.owner, home)) is not None:
        return theirs
    name = trust.hidden_name(root, make=not given.is_full)
    if name is None or home.name == name:  # the variables of a job name the folder itself
        _check_links(root, home)
        return home
    if home.is_symlink():  # the user has agreed to it as it is; a pull may lead it elsewhere
        home = real_path(home)
    hidden = home / name
    confinement.check_path(home, hidden)
    if given.is_full:
        return hidden if hidden.is_dir() else home
    check_owner(hidden, given.owner)
    return hidden


def check_home(settings: Settings) -> None:
    """Check the way from a project to its home again, before something is written: a pull may have made it a link.

    Raises:
        LinkError: It has, and the user has not agreed to it.
    """
    _check_links(settings.root, settings.home)


def _check_links(root: Path, home: Path) -> None:
    way = home.relative_to(root) if home.is_relative_to(root) else Path()
    for link in (root / folder for folder in (way, *way.parents)):
        if link == root or not link.is_symlink():
            continue
        given = trust_in(root)
        if not (given.is_full or given.grants(link_privilege(link))):
            raise LinkError(
                f"{link} is a link to {real_path(link)}: remove it, or set DOCINDEX_HOME to the path that you mean"
            )


def is_inside(root: Path, home: Path) -> bool:
    """Whether a home lies in a project, by its name or by where links lead, so that the project may bring it along."""
    return any(Path(place(home)).is_relative_to(place(root)) for place in (os.path.normpath, os.path.realpath))


def _home_of(owner: int | None, home: Path) -> Path | None:
    """Return the home that another owner of a project has there: the newest one, since its name is that user's secret.

    None if there is none, or git tracks files in it, so that whoever pushes could change it.
    """
    if not home.is_dir() or is_tracked(home):
        return None
    try:
        hidden = [folder for folder in confinement.entries(home, home) if confinement.HIDDEN.fullmatch(folder.name)]
        found = [(folder.lstat(), folder) for folder in hidden]
    except OSError:  # whoever opens the home reports why
        found = []
    theirs = [(about.st_mtime_ns, folder) for about, folder in found if _is_folder_of(owner, about)]
    if theirs:
        return max(theirs)[1]
    return home if home.stat().st_uid == owner else None


def _is_folder_of(owner: int | None, about: os.stat_result) -> bool:
    return stat.S_ISDIR(about.st_mode) and about.st_uid == owner


def link_privilege(link: Path) -> Privilege:
    """The privilege of a home or a `docindex.toml` that is a link: docindex would write to the place it leads to."""
    return Privilege.of(link.name, f"a link to {real_path(link)}")


def requested_privileges(root: Path, values: Mapping[str, Any]) -> list[Privilege]:
    """List what the files of the project at `root` ask for, if its `docindex.toml` has these values.

    Raises:
        SettingsError: One of the files is too large.
    """
    links = [link_privilege(link) for link in (root / CONFIG_NAME, root / HOME_NAME) if link.is_symlink()]
    return [*privileges_of(Settings, root, values), *environment_privileges(root), *links]


def untrusted_home(root: Path) -> Path:
    """Where the index of a project lies while the user does not trust it."""
    return trust.cache() / "untrusted" / digest(os.fsencode(root))


def check_settings(root: Path, values: dict[str, Any]) -> Settings:
    """The settings that the values of a file at `root` give, with the environment over them.

    Raises:
        SettingsError: as `load_settings`.
    """
    file = root / CONFIG_NAME
    # pydantic-settings takes some arguments that are no settings, such as `_cli_parse_args`.
    if unknown := values.keys() - Settings.model_fields.keys():
        raise SettingsError(f"{file}: {min(unknown)} is not a setting; see docs/configuration.md for those that are")
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
        raise SettingsError(f"a DOCINDEX_ variable cannot be read: {first_line(error)}") from error


def _explain(file: Path, values: dict[str, Any], item: Any) -> str:
    """One line for one wrong setting: where it stands, what was given, what is allowed."""
    location = [str(part) for part in item["loc"]]
    in_file = _is_in(values, item["loc"])
    variable = "DOCINDEX_" + "__".join(location).upper()
    where = f"{file}: {'.'.join(location)}" if in_file or variable not in os.environ else variable
    if item["type"] == "extra_forbidden":
        return f"{where} is not a setting; see docs/configuration.md for those that are"
    given = "" if item["type"] in {"missing", "value_error"} else f" (given: {scrub(repr(item['input']))})"
    message = item["msg"].removeprefix("Value error, ")
    return f"{where}: {message}{given}"


def _is_in(values: Any, location: tuple[int | str, ...]) -> bool:
    for part in location:
        try:
            values = values[part]
        except (KeyError, IndexError, TypeError):
            return False
    return True
