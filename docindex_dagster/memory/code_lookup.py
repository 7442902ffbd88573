"""The indexed code beside a memory: what messages name in it, what became of that, and a search of it."""

from collections.abc import Sequence

from docindex_dagster.core.errors import AccessError, DamagedStoreError, StoreError
from docindex_dagster.memory.anchors import Anchored, anchors_of, look
from docindex_dagster.memory.mentions import mentions_in
from docindex_dagster.memory.message import Anchor
from docindex_dagster.search.ask import Request, hits_of
from docindex_dagster.search.live import Live
from docindex_dagster.search.model import Hit


def named(code: Live, text: str) -> tuple[tuple[Anchor, ...], str]:
    """The code that a text names, and why it could not be looked up, if it could not.

    The index is not opened for a text that names none.
    """
    mentions = mentions_in(text)
    if not mentions:
        return (), ""
    try:
        return code.reading(lambda reader: anchors_of(reader, mentions)), ""
    except (AccessError, DamagedStoreError) as error:
        return (), str(error)
    except StoreError:  # nothing is indexed
        return (), ""


def looked_at(code: Live, anchors: Sequence[Anchor], warnings: list[str], *, impact: bool) -> list[Anchored]:
    """What became of code; all of it is unknown where the index cannot be read, with a warning if it is there."""
    try:
        return code.reading(lambda reader: look(code.settings, reader, anchors, impact=impact))
    except (AccessError, DamagedStoreError) as error:
        warnings.append(str(error))
    except StoreError:  # nothing is indexed
        pass
    return look(code.settings, None, anchors)


def found(code: Live, query: str, top_k: int, warnings: list[str]) -> tuple[Hit, ...]:
    """The best hits of code and documents; none, and a warning, where nothing can be searched."""
    try:
        request = Request(query, top_k=top_k)
        return tuple(code.reading(lambda reader: hits_of(code.settings, reader, request, warnings.append)))
    except (AccessError, StoreError) as error:
        warnings.append(str(error))
        return ()
