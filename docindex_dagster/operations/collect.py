"""Collect questions with the places that answered them, if `evaluation.collect` is set."""

from pydantic import Field

from docindex_dagster.core.errors import CollectingOffError
from docindex_dagster.core.safe_text import well_formed
from docindex_dagster.evaluation.collected_questions import Noted, collect, take_back, target_named
from docindex_dagster.evaluation.question_file import LONGEST
from docindex_dagster.evaluation.questions import Origin, Target
from docindex_dagster.operations.fields import Name, Place, Request, Text
from docindex_dagster.search.live_index import Live
from docindex_dagster.search.lookup import readings_of
from docindex_dagster.search.scope import keys_of
from docindex_dagster.stores.reader import Reader


class NoteRequest(Request):
    """Note that an indexed place answers a question."""

    question: Text = Field(
        min_length=1,
        max_length=LONGEST,
        description="What was asked, in the words of who asked; no secrets in it.",
    )
    place: Place = Field(description="What answered it: PATH:FIRST-LAST, PATH:LINE, PATH or a chunk id.")
    source: Name | None = Field(
        default=None, description="The source of the path, by key or name, where several have one."
    )
    answers: bool = Field(
        default=True, description="false takes back what was noted before, with the same question and place."
    )


def note(live: Live, request: NoteRequest, origin: Origin) -> Noted:
    """Note that a place answers a question, or take that back; `origin` names the client.

    Raises:
        CollectingOffError: the settings do not collect questions.
        QueryError: the place is not indexed or no file, several sources have it, or the question may not be noted.
        QuestionError: the question is empty, or none that a file can hold.
        SourceError: there is no such source, or it is not indexed.
        StoreError: nothing is published, or it cannot be read.
        AccessError: the home may not be written.
        FullDiskError: there is no space left.
    """
    settings = live.settings
    if not settings.evaluation.collect:
        raise CollectingOffError("no question is noted here: set evaluation.collect = true in docindex.toml")

    def find(reader: Reader) -> Target:
        keys = keys_of(settings, reader.generation, [request.source] if request.source else [], all_sources=True)
        is_here = origin == "mcp"  # the agent may name files of this disk, other clients only what is indexed
        readings = readings_of(settings, request.place, reader.generation.sources) if is_here else ()
        return target_named(reader, well_formed(request.place), keys, readings)

    target = live.reading(find)
    if request.answers:
        return collect(settings, request.question, target, origin)
    return take_back(settings, request.question, target)
