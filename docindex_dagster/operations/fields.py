"""The types of fields that several requests have, with their limits."""

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WrapValidator

from docindex_dagster.core.errors import QueryError
from docindex_dagster.core.printable import in_line, shortened, well_formed

LONGEST_QUERY = 20_000  # characters
LONGEST_NAME = 4096  # characters: no path is longer
_MOST_NAMES = 1000
_SUBJECTS = frozenset({"Input", "String", "List"})  # that messages of pydantic begin with
_LONGEST_INPUT = 60  # characters of what was given that a message repeats


class Request(BaseModel):
    """What is asked. Nothing but its fields is accepted."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @classmethod
    def of(cls, **given: Any) -> Self:
        """A request for an operation.

        Raises:
            QueryError: a value is not allowed; it names each mistake.
        """
        try:
            return cls(**given)
        except ValidationError as error:
            raise QueryError(mistakes(error)) from None


def _text(given: object) -> object:
    return well_formed(given) if isinstance(given, str) else given


def _names(given: object) -> object:
    """A list of names; a single name is one of a list, and null none."""
    names = [] if given is None else [given] if isinstance(given, str) else given
    if not isinstance(names, list | tuple):
        return names
    if len(names) > _MOST_NAMES or any(isinstance(name, str) and len(name) > LONGEST_NAME for name in names):
        raise ValueError(f"should have at most {_MOST_NAMES:,} names of at most {LONGEST_NAME:,} characters")
    return [_text(name) for name in names]


def _as_typed(given: Any, validated: Any) -> Any:
    """A text as it is: a shell passes the bytes of a file name that are not UTF-8 as halves of surrogate pairs."""
    return given if isinstance(given, str) and len(given) <= LONGEST_NAME else validated(given)


NamesOf = BeforeValidator(_names)
Names = Annotated[list[str], NamesOf]
Text = Annotated[str, BeforeValidator(_text)]
Name = Annotated[Text, Field(max_length=LONGEST_NAME)]
Typed = Annotated[str, Field(max_length=LONGEST_NAME), WrapValidator(_as_typed)]
Query = Annotated[Text, Field(max_length=LONGEST_QUERY)]
Sources = Annotated[Names, Field(description="Only these sources, by key or name. Default: all but branches.")]
Place = Annotated[
    Typed,
    Field(
        description="As answers print it: [SOURCE] PATH[:LINE], a chunk id, a symbol, or how a commit's hash begins."
    ),
]
PathOf = Annotated[
    Name | None,
    Field(description="Only this file or folder of a source, or paths that match a glob, such as 'src/**/*.py'."),
]


def mistakes(error: ValidationError) -> str:
    """What is wrong with each argument."""
    return "; ".join(_mistake(dict(mistake)) for mistake in error.errors(include_url=False))


def _mistake(mistake: Mapping[str, Any]) -> str:
    """What is wrong with one argument, as `top_k should be less than or equal to 50, not 900`."""
    first, *rest = mistake["loc"] or ("arguments",)
    argument = f"{first}{''.join(f'[{part}]' for part in rest)}"
    if mistake["type"] == "missing":
        return f"{argument} is missing"
    message = str(mistake["msg"]).removeprefix("Value error, ")
    subject, _, rule = message.partition(" ")
    what = rule if subject in _SUBJECTS else message if subject == "should" else f"is wrong: {message}"
    return f"{argument} {what}, not {given(mistake['input'])}"


def given(value: object) -> str:
    """A value that was given, in a line."""
    return in_line(shortened(repr(value), _LONGEST_INPUT))
