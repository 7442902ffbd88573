"""Field types of requests, with their limits and validators."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WrapValidator

from docindex_dagster.core.errors import QueryError
from docindex_dagster.core.safe_text import in_line, shortened, well_formed

LONGEST_QUERY = 20_000  # characters
LONGEST_NAME = 4096  # characters: no path is longer
_MOST_NAMES = 1000
_SUBJECTS = frozenset({"Input", "String", "List"})  # first words of pydantic's messages
_LONGEST_INPUT = 60  # characters of a value that a message repeats
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


class Request(BaseModel):
    """Base of requests. Unknown fields are rejected."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @classmethod
    def parse(cls, **given: Any) -> Self:
        """Return the request with these values.

        Raises:
            QueryError: a value is invalid; the message names each one.
        """
        try:
            return cls(**given)
        except ValidationError as error:
            raise QueryError(describe_errors(error)) from None


def describe_errors(error: ValidationError) -> str:
    """Return what is wrong with each argument, such as `top_k should be less than or equal to 50, not 900`."""
    return "; ".join(_described(dict(mistake)) for mistake in error.errors(include_url=False))


def _described(mistake: Mapping[str, Any]) -> str:
    first, *rest = mistake["loc"] or ("arguments",)
    argument = f"{first}{''.join(f'[{part}]' for part in rest)}"
    if mistake["type"] == "missing":
        return f"{argument} is missing"
    message = str(mistake["msg"]).removeprefix("Value error, ")
    subject, _, rule = message.partition(" ")
    what = rule if subject in _SUBJECTS else message if subject == "should" else f"is wrong: {message}"
    return f"{argument} {what}, not {quoted(mistake['input'])}"


def quoted(value: object) -> str:
    """Return an input value in one line, shortened, for a message."""
    return in_line(shortened(repr(value), _LONGEST_INPUT))


def _well_formed(given: object) -> object:
    return well_formed(given) if isinstance(given, str) else given


def _names(given: object) -> object:
    """Return a list of names; a single name becomes a list of one, null an empty list."""
    names = [] if given is None else [given] if isinstance(given, str) else given
    if not isinstance(names, list | tuple):
        return names
    if len(names) > _MOST_NAMES or any(isinstance(name, str) and len(name) > LONGEST_NAME for name in names):
        raise ValueError(f"should have at most {_MOST_NAMES:,} names of at most {LONGEST_NAME:,} characters")
    return [_well_formed(name) for name in names]


def _as_typed(given: Any, validated: Any) -> Any:
    """Keep lone surrogates, which stand for bytes of a file name that are not UTF-8; pydantic rejects them."""
    return given if isinstance(given, str) and len(given) <= LONGEST_NAME else validated(given)


def _reject_numbers(given: object) -> object:
    """Reject seconds since 1970, which pydantic would accept."""
    if isinstance(given, int | float) or (isinstance(given, str) and "-" not in given):
        raise ValueError("should be a date or a moment, as 2026-01-31 or 2026-01-31T12:00:00Z")
    return given


def _in_utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _end_of_day(given: object) -> object:
    return f"{given}T23:59:59.999999" if isinstance(given, str) and _DATE.fullmatch(given) else given


Text = Annotated[str, BeforeValidator(_well_formed)]
RawText = Annotated[str, Field(max_length=LONGEST_NAME), WrapValidator(_as_typed)]
Name = Annotated[Text, Field(max_length=LONGEST_NAME)]
OneOrMore = BeforeValidator(_names)
Names = Annotated[list[str], OneOrMore]
Query = Annotated[Text, Field(max_length=LONGEST_QUERY)]
Sources = Annotated[Names, Field(description="Only these sources, by key or name. Default: all but branches.")]
AllSources = Annotated[bool, Field(description="Also further branches, and not the default source alone.")]
Place = Annotated[
    RawText,
    Field(
        description="As answers print it: [SOURCE] PATH[:LINE], a chunk id, a symbol, or how a commit's hash begins."
    ),
]
PathFilter = Annotated[
    Name | None,
    Field(description="Only this file or folder of a source, or paths that match a glob, such as 'src/**/*.py'."),
]
Moment = Annotated[datetime, BeforeValidator(_reject_numbers), AfterValidator(_in_utc)]
"""A date or a moment; UTC unless it names a zone."""
LastMoment = Annotated[Moment, BeforeValidator(_end_of_day)]
"""The same; a date includes its whole day."""
