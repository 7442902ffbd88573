"""A checked citation as programs get it, of the command line and over HTTP: without the text of its passage."""

from dataclasses import dataclass

from docindex_dagster.answering.citations import Citation, State


@dataclass(frozen=True, slots=True)
class CheckedCitation:
    """A number in a mark of the answer, checked.

    Attributes:
        number: of the passage.
        start: where its mark begins in the answer's text, in characters (code points of Unicode).
        end: where the mark ends.
        claim: the sentence that it is to prove.
        state: what the check says.
        source: of the cited lines; null where there is no such passage.
        path: likewise.
        start_line: likewise.
        end_line: likewise.
        is_moved: whether the lines are others than the sentence names.
        support: how much of the sentence they have, 0 to 1; null where it was not checked.
        better: the number of a passage that has more of a doubtful sentence.
        stale: whether the lines have changed on disk since; null where that is unknown.
        chunk_ids: of the passage.
    """

    number: int
    start: int
    end: int
    claim: str
    state: State
    source: str | None
    path: str | None
    start_line: int | None
    end_line: int | None
    is_moved: bool
    support: float | None
    better: int | None
    stale: bool | None
    chunk_ids: tuple[str, ...]

    @classmethod
    def of(cls, citation: Citation) -> "CheckedCitation":
        """A citation as programs get it."""
        passage = citation.passage
        return cls(
            number=citation.number,
            start=citation.start,
            end=citation.end,
            claim=citation.claim,
            state=citation.state,
            source=passage.source if passage else None,
            path=passage.path if passage else None,
            start_line=citation.start_line if passage else None,
            end_line=citation.end_line if passage else None,
            is_moved=citation.is_moved,
            support=citation.support,
            better=citation.better,
            stale=citation.stale,
            chunk_ids=citation.chunk_ids,
        )
