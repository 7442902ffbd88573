"""Collecting questions with what answered them, for clients and agents, where `evaluation.collect` is set."""

from docindex_dagster.core.errors import CollectingOffError
from docindex_dagster.evaluation.collected import Noted, collect, take_back, target_named
from docindex_dagster.evaluation.questions import Origin, Target
from docindex_dagster.search.live import Live
from docindex_dagster.search.places import readings_of
from docindex_dagster.search.scope import keys_of
from docindex_dagster.stores.reader import Reader


def note(live: Live, question: str, place: str, source: str | None, origin: Origin, *, answers: bool = True) -> Noted:
    """Note that an indexed place answers a question, or that it does not after all.

    Args:
        live: the index.
        question: what was asked.
        place: what answers it.
        source: of the place; None where the place alone says it.
        origin: who says so.
        answers: whether it does.

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
        keys = keys_of(settings, reader.generation, (source,) if source else (), all_sources=True)
        is_here = origin == "mcp"  # the agent may name files of this disk, other clients only what is indexed
        readings = readings_of(settings, place, reader.generation.sources) if is_here else ()
        return target_named(reader, place, keys, readings)

    target = live.reading(find)
    if answers:
        return collect(settings, question, target, origin)
    return take_back(settings, question, target)
