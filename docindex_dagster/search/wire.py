"""Questions and answers as JSON, for cells on other machines.

Each question names the type of its answer by the annotation of `of`, so that nothing is said twice.
"""

from functools import cache
from typing import Any, get_type_hints

import orjson
from pydantic import TypeAdapter, ValidationError

from docindex_dagster.core.errors import QueryError
from docindex_dagster.search.candidates import AskMeeting, AskNames, AskNearest, AskWords
from docindex_dagster.search.cells import AskLengths, Question
from docindex_dagster.search.closeness import AskSpelt
from docindex_dagster.search.counts import AskCounts
from docindex_dagster.search.graph import AskWalk
from docindex_dagster.search.hits import AskRows
from docindex_dagster.search.lookup import AskCommits, AskFile, AskMet
from docindex_dagster.search.matches import AskMatches
from docindex_dagster.search.naming import AskNaming
from docindex_dagster.search.scan import AskHolding
from docindex_dagster.search.similar import AskVectors

QUESTIONS: dict[str, type] = {
    question.__name__: question
    for question in (
        *(AskLengths, AskCounts, AskWords, AskNames, AskNearest, AskMeeting, AskRows, AskWalk, AskSpelt, AskNaming),
        *(AskHolding, AskMatches, AskMet, AskFile, AskCommits, AskVectors),
    )
}


def written(value: object) -> bytes:
    """A question's fields, or an answer."""
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)


def question(name: str, data: bytes) -> Question[Any]:
    """The question of a name with its fields.

    Raises:
        QueryError: it is none.
    """
    try:
        asked: Question[Any] = _adapter(QUESTIONS[name]).validate_python(orjson.loads(data))
    except (KeyError, ValueError, ValidationError) as error:
        raise QueryError(f"{name!r} is no question to a cell: its server is of another version") from error
    return asked


def answer(asked: Question[Any], data: bytes) -> Any:
    """The answer to a question.

    Raises:
        ValueError: it is none.
    """
    return _adapter_of_answer(type(asked)).validate_python(orjson.loads(data))


@cache
def _adapter(kind: type) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


@cache
def _adapter_of_answer(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(get_type_hints(kind.of, include_extras=True)["return"])
