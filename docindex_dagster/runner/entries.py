"""Journal entries: the request for a run, the reports of its stages, and its end.

They are plain data that survive a round trip through JSON, so Dagster can record a run of another process.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Literal, Self

import pyarrow as pa

from docindex_dagster.pipeline.stage import CheckResult, Outcome, Report

Launcher = Literal["command line", "watch", "serve"]
Mode = Literal["changes", "full", "verify"]
Kind = Literal["index", "remove"]
Numbers = Mapping[str, int | float | str]
_NO_NUMBERS: Numbers = MappingProxyType({})
_SAMPLE_ROWS = 5
_DETAIL_ROWS = 20  # of a check


class State(StrEnum):
    """The state of a run."""

    QUEUED = "queued"
    RUNNING = "running"
    CANCELLING = "cancelling"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELED = "canceled"
    LOST = "lost"  # its process was killed

    @property
    def has_ended(self) -> bool:
        """Whether the state is final."""
        return self in _FINAL


_FINAL = (State.SUCCEEDED, State.FAILED, State.CANCELED, State.LOST)


@dataclass(frozen=True, slots=True)
class Run:
    """A request to index or remove one source.

    `asked_at` is in seconds since 1970. `only` lists the files to check; empty means all. `key` is the idempotency key.
    """

    run_id: str
    source: str
    launched_by: Launcher
    asked_at: float
    mode: Mode = "changes"
    only: tuple[str, ...] = ()
    kind: Kind = "index"
    key: str | None = None


@dataclass(frozen=True, slots=True)
class ProductEntry:
    """The report on a product. Tables are truncated to the rows that Dagster shows."""

    version: str
    numbers: Numbers
    row_count: int | None = None
    schema: pa.Schema | None = None
    sample: pa.Table | None = None
    breakdowns: Mapping[str, pa.Table] = field(default_factory=dict)

    @classmethod
    def of(cls, report: Report) -> Self:
        """Reduce a report to the data that Dagster shows."""
        rows, sample = report.rows, report.sample
        return cls(
            report.version,
            report.numbers,
            None if rows is None else rows.num_rows,
            None if rows is None else rows.schema.remove_metadata(),
            None if sample is None else sample.slice(0, _SAMPLE_ROWS),
            report.breakdowns,
        )


@dataclass(frozen=True, slots=True)
class StageEntry:
    """The result of a stage: its products, the violated rules, or the reason for its failure."""

    stage: str
    seconds: float = 0.0
    products: Mapping[str, ProductEntry] = field(default_factory=dict)
    checks: Mapping[str, CheckResult] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    tables: Numbers = field(default_factory=dict)  # size of its tables in bytes, and whether they were rewritten
    broken: Mapping[str, str] = field(default_factory=dict)  # reasons, by the name of the violated rule
    failure: str = ""

    @classmethod
    def of(cls, stage: str, outcome: Outcome, tables: Numbers = _NO_NUMBERS) -> Self:
        """Convert the outcome of a stage, without its value."""
        products = {name: ProductEntry.of(report) for name, report in outcome.reports.items()}
        checks = {name: _truncated(check) for name, check in outcome.checks.items()}
        return cls(stage, 0.0, products, checks, outcome.warnings, tables)

    @property
    def has_ended_well(self) -> bool:
        """Whether later stages can use the result."""
        return not self.broken and not self.failure


@dataclass(frozen=True, slots=True)
class End:
    """The end of a run. `ended_at` is in seconds since 1970."""

    state: State
    ended_at: float
    failures: tuple[str, ...] = ()


@dataclass(slots=True)
class Entry:
    """A run in the journal."""

    run: Run
    is_alive: bool  # whether its process is running
    attempts: int = 0  # to start its process
    started_at: float | None = None  # of its process, at the last attempt
    pid: int = 0  # of its process; 0 if unknown
    has_begun: bool = False
    has_stages: bool = False  # whether Dagster records the run; false for removals, and for runs on other machines
    is_cancelled: bool = False
    summary: dict[str, Any] | None = None  # the output of `docindex index --json`
    end: End | None = None

    @property
    def state(self) -> State:
        """The state of the run."""
        if self.end:
            return self.end.state
        if not self.is_alive:
            return State.QUEUED
        return State.CANCELLING if self.is_cancelled else State.RUNNING


def parse_run(values: Mapping[str, Any]) -> Run:
    """Parse the first line of an entry."""
    return Run(**{**values, "only": tuple(values["only"])})


def parse_end(values: Mapping[str, Any]) -> End:
    """Parse the last line of an entry."""
    return End(State(values["state"]), values["ended_at"], tuple(values["failures"]))


def as_json(value: object) -> Any:
    """Convert dataclasses and tables (as Arrow streams in base64), for the `default` argument of `json.dumps`."""
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, pa.Schema):
        value = value.empty_table()
    if isinstance(value, pa.Table):
        return _text(value)
    return dict(value) if isinstance(value, Mapping) else str(value)


def parse_stage(values: Mapping[str, Any]) -> StageEntry:
    """Parse a stage entry that `as_json` wrote."""
    return StageEntry(
        **{
            **values,
            "warnings": tuple(values["warnings"]),
            "products": {name: _product_of(product) for name, product in values["products"].items()},
            "checks": {name: _check_of(check) for name, check in values["checks"].items()},
        }
    )


def without_samples(values: Mapping[str, Any]) -> dict[str, Any]:
    """Remove sample rows from a stage entry that `as_json` wrote."""
    products = {name: {**product, "sample": None} for name, product in values["products"].items()}
    return {**values, "products": products}


def _truncated(check: CheckResult) -> CheckResult:
    """Truncate the details of a check to the rows that Dagster shows."""
    return replace(check, details={name: table.slice(0, _DETAIL_ROWS) for name, table in check.details.items()})


def _product_of(values: Mapping[str, Any]) -> ProductEntry:
    schema, sample = values["schema"], values["sample"]
    return ProductEntry(
        values["version"],
        values["numbers"],
        values["row_count"],
        None if schema is None else _table(schema).schema,
        None if sample is None else _table(sample),
        {name: _table(text) for name, text in values["breakdowns"].items()},
    )


def _check_of(values: Mapping[str, Any]) -> CheckResult:
    details = {name: _table(text) for name, text in values["details"].items()}
    return CheckResult(values["passed"], values["reason"], details)


def _text(table: pa.Table) -> str:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return base64.b64encode(sink.getvalue()).decode("ascii")


def _table(text: str) -> pa.Table:
    return pa.ipc.open_stream(base64.b64decode(text)).read_all()
