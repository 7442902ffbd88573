"""Field types of requests, with their limits and validators."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WrapValidator

from docindex_dagster.core.errors import QueryError
from docindex_dagster.core.safe_text import on_one_line, truncate_middle, well_formed

LONGEST_QUERY = 20_000  # characters
LONGEST_NAME = 4096  # characters; the longest path
_MAX_NAMES = 1000
_SUBJECTS = frozenset({"Input", "String", "List"})  # first words of pydantic's messages, which are dropped
_MAX_INPUT_LENGTH = 60  # characters of a value that a message shows
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


class Request(BaseModel):
    """Base of requests. Unknown fields are rejected."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @classmethod
    def parse(cls, **values: Any) -> Self:
        """Return the request with these values.

        Raises:
            QueryError: A value is invalid. The message names each one.
        """
        try:
            return cls(**values)
        except ValidationError as error:
            raise QueryError(describe_errors(error)) from None


def describe_errors(error: ValidationError) -> str:
    """Describe what is wrong with each argument, such as `top_k should be less than or equal to 50, not 900`."""
    return "; ".join(_describe(dict(mistake)) for mistake in error.errors(include_url=False))


def _describe(mistake: Mapping[str, Any]) -> str:
    first, *rest = mistake["loc"] or ("arguments",)
    argument = f"{first}{''.join(f'[{part}]' for part in rest)}"
    if mistake["type"] == "missing":
        return f"{argument} is missing"
    message = str(mistake["msg"]).removeprefix("Value error, ")
    subject, _, rule = message.partition(" ")
    what = rule if subject in _SUBJECTS else message if subject == "should" else f"is invalid: {message}"
    return f"{argument} {what}, not {quoted(mistake['input'])}"


def quoted(value: object) -> str:
    """Format an input value for a message, shortened and on one line."""
    return on_one_line(truncate_middle(repr(value), _MAX_INPUT_LENGTH))


def _well_formed(value: object) -> object:
    return well_formed(value) if isinstance(value, str) else value


def _names(value: object) -> object:
    """Return a list of names. A single name becomes a list with one item, null an empty list."""
    names = [] if value is None else [value] if isinstance(value, str) else value
    if not isinstance(names, list | tuple):
        return names
    if len(names) > _MAX_NAMES or any(isinstance(name, str) and len(name) > LONGEST_NAME for name in names):
        raise ValueError(f"should have at most {_MAX_NAMES:,} names of at most {LONGEST_NAME:,} characters")
    return [_well_formed(name) for name in names]


def _keep_surrogates(value: Any, validate: Any) -> Any:
    """Keep lone surrogates, which represent file name bytes that are not UTF-8, although pydantic rejects them."""
    return value if isinstance(value, str) and len(value) <= LONGEST_NAME else validate(value)


def _reject_numbers(value: object) -> object:
    """Reject seconds since 1970, which pydantic would accept."""
    if isinstance(value, int | float) or (isinstance(value, str) and "-" not in value):
        raise ValueError("should be a date or time such as 2026-01-31 or 2026-01-31T12:00:00Z")
    return value


def _in_utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _end_of_day(value: object) -> object:
    return f"{value}T23:59:59.999999" if isinstance(value, str) and _DATE.fullmatch(value) else value


Text = Annotated[str, BeforeValidator(_well_formed)]
RawText = Annotated[str, Field(max_length=LONGEST_NAME), WrapValidator(_keep_surrogates)]
Name = Annotated[Text, Field(max_length=LONGEST_NAME)]
OneOrMore = BeforeValidator(_names)
Names = Annotated[list[str], OneOrMore]
Query = Annotated[Text, Field(max_length=LONGEST_QUERY)]
Sources = Annotated[
    Names, Field(description="Restrict to these sources, by key or name. Default: all except branches.")
]
AllSources = Annotated[bool, Field(description="Search all sources, including branches.")]
Place = Annotated[
    RawText,
    Field(description="What results print: [SOURCE] PATH[:LINE], a chunk ID, a symbol or an abbreviated commit hash."),
]
PathFilter = Annotated[
    Name | None,
    Field(description="Restrict to a file or folder of a source, or to paths matching a glob such as 'src/**/*.py'."),
]
Moment = Annotated[datetime, BeforeValidator(_reject_numbers), AfterValidator(_in_utc)]
"""A date or time, in UTC unless it has a time zone."""
LastMoment = Annotated[Moment, BeforeValidator(_end_of_day)]
"""Like `Moment`, but a date means the end of that day."""
