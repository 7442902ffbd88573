"""Whether the drafts of a chunker of a package fit their file."""

from docindex_dagster.chunking.draft import Draft, FileDrafts
from docindex_dagster.core.errors import ChunkerError


def check_drafts(found: FileDrafts, text: str) -> None:
    """Check the drafts of one file.

    Raises:
        ChunkerError: one has nothing to read, or lines, bytes or a parent that the file does not have; or there is
            none, though the file is not blank.
    """
    if not found.drafts and text.strip():
        raise ChunkerError("it returned no draft")
    data, lines = text.encode(), text.count("\n") + 1
    for index, draft in enumerate(found.drafts):
        problem = _problem(draft, index, data, lines)
        if problem:
            raise ChunkerError(f"draft {index} of {len(found.drafts)} {problem}")


def _problem(draft: Draft, index: int, data: bytes, lines: int) -> str | None:
    if not draft.text.strip():
        return "has no text"
    if not 1 <= draft.start_line <= draft.end_line <= lines:
        return f"has lines {draft.start_line} to {draft.end_line} of {lines}"
    if draft.parent_index is not None and not 0 <= draft.parent_index < index:
        return f"continues draft {draft.parent_index}, which is not before it"
    if draft.start_byte is None or draft.end_byte is None:
        return None if draft.start_byte is draft.end_byte else "has one of start_byte and end_byte alone"
    if not 0 <= draft.start_byte <= draft.end_byte or data[draft.start_byte : draft.end_byte] != draft.text.encode():
        return f"is not what stands at bytes {draft.start_byte} to {draft.end_byte}"
    return None
