"""Collect questions with the passages that answered them, if `evaluation.collect` is set."""

from pydantic import Field

from docindex_dagster.core.errors import CollectionDisabledError
from docindex_dagster.core.safe_text import well_formed
from docindex_dagster.evaluation.collected_questions import CollectResult, collect, delete_answer, target_named
from docindex_dagster.evaluation.question_file import LONGEST
from docindex_dagster.evaluation.questions import Origin, Target
from docindex_dagster.operations.fields import Name, Place, Request, Text
from docindex_dagster.search.live_index import Live
from docindex_dagster.search.lookup import readings_of
from docindex_dagster.search.scope import keys_of
from docindex_dagster.stores.reader import Reader


class NoteRequest(Request):
    """Record that an indexed passage answers a question."""

    question: Text = Field(
        min_length=1,
        max_length=LONGEST,
        description="The question, in the words of whoever asked it, without secrets.",
    )
    place: Place = Field(description="The passage that answers it: PATH:FIRST-LAST, PATH:LINE, PATH or a chunk ID.")
    source: Name | None = Field(
        default=None, description="The source of the path, by key or name, if several sources have the path."
    )
    answers: bool = Field(
        default=True, description="Set to false to delete an earlier record with the same question and passage."
    )


def note(live: Live, request: NoteRequest, origin: Origin) -> CollectResult:
    """Record that a passage answers a question, or delete that record; `origin` names the client.

    Raises:
        CollectionDisabledError: The settings do not collect questions.
        QueryError: The place is not indexed, not a file or ambiguous, or the question may not be recorded.
        QuestionError: The question is empty, or cannot be stored in the file.
        SourceError: The source does not exist, or is not indexed.
        StoreError: Nothing is published, or it cannot be read.
        AccessError: The home is not writable.
        FullDiskError: The disk is full.
    """
    settings = live.settings
    if not settings.evaluation.collect:
        raise CollectionDisabledError("questions are not collected: set evaluation.collect = true in docindex.toml")

    def find(reader: Reader) -> Target:
        keys = keys_of(settings, reader.generation, [request.source] if request.source else [], all_sources=True)
        is_here = origin == "mcp"  # agents may name files on this disk, other clients only what is indexed
        readings = readings_of(settings, request.place, reader.generation.sources) if is_here else ()
        return target_named(reader, well_formed(request.place), keys, readings)

    target = live.reading(find)
    if request.answers:
        return collect(settings, request.question, target, origin)
    return delete_answer(settings, request.question, target)
