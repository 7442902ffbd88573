"""The best chunks packed into a budget of tokens, as a text to read before answering: for prompts.

Nothing is repeated: overlapping and adjoining chunks of a file become one passage, and a text that
stands in several places is taken from the first. Passages come in reading order: files by their best chunk, and within
a file from its top. Before they are packed, `gathered` adds what the graph links to the best hits: what they call and
who calls them, the class that they extend, the test that shows their use.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from docindex_dagster.core.errors import DamagedStoreError
from docindex_dagster.core.safe_text import fence_around, in_line
from docindex_dagster.core.tokenizer import count_tokens
from docindex_dagster.core.traces import spanned
from docindex_dagster.graph.links import walk
from docindex_dagster.search import candidates, snippets
from docindex_dagster.search.candidates import GRAPH, Pool
from docindex_dagster.search.hits import hit_of, rows_of
from docindex_dagster.search.model import CHANGED, Hit, Scored, Signal
from docindex_dagster.search.query import understand
from docindex_dagster.search.reranking.protocol import ignore_warning
from docindex_dagster.stores.analysis import stems
from docindex_dagster.stores.damage import reading_stores

_CUT = "…"
_ABOUT_AS_GOOD = 0.7  # of the score of what did not fit
_LEAST_TOKENS = 32  # a smaller rest of a chunk says nothing
_LAST = "last"
_SEEDS = 10  # of the best: walks in the graph begin there
_FURTHER = 25  # chunks, at most, that no retriever found
_GAIN = 0.5  # of the best score, for the chunk to which most of these lead


@dataclass(frozen=True, slots=True)
class ContextPassage:
    """Lines of a file, with what they are; `tokens` counts them as `markdown` writes them.

    `line` is the one of them that matches best, by its number in the file, and 0 where that is not known. `stale` says
    whether the file on disk differs from what was indexed; None where that is unknown.
    """

    source: str
    path: str
    start_line: int
    end_line: int
    kind: str
    name: str | None
    language: str | None
    text: str
    tokens: int
    chunk_ids: tuple[str, ...]
    stale: bool | None
    is_cut: bool = False
    page: int | None = None  # of a PDF
    score: float = 0.0  # of its best hit
    line: int = 0


@dataclass(frozen=True, slots=True)
class Context:
    """What of `found` hits fits into a budget, in reading order; `tokens` are those of `markdown`."""

    query: str
    found: int
    budget: int
    tokens: int
    passages: tuple[ContextPassage, ...]

    @property
    def markdown(self) -> str:
        """All passages, each under a heading that says where it is from and what it is."""
        return "\n".join(map(_as_markdown, self.passages))


def nothing_in(context: Context) -> str:
    """Why a context is empty."""
    if not context.found:
        return "Nothing found. Try other words, or fewer filters."
    return f"The best result does not fit into {context.budget} tokens. Ask for more."


@spanned("pack context")
def pack(query: str, hits: Sequence[Hit], budget: int) -> Context:
    """Take hits, best first, as long as they fit.

    Where one does not, smaller ones may take its place that are about as good. The first is cut, at a line, where it
    alone is larger than the budget. Tokens are those of `tokenizer`, and count headings and fences.

    Args:
        query: what was asked.
        hits: best first.
        budget: tokens, at most.
    """
    taken: dict[tuple[str, str], list[Hit]] = {}
    passages: dict[tuple[str, str], list[ContextPassage]] = {}
    seen: set[str] = set()
    size = 0
    least = -math.inf  # the score of what may still be taken
    for hit in hits:
        body = hit.text.strip()
        if body in seen or hit.score < least:
            continue
        file = (hit.source, hit.path)
        of_file = [*taken.get(file, ()), hit]
        longer = _passages(of_file)
        new_size = size - _size(passages.get(file, ())) + _size(longer)
        if new_size - 1 <= budget:  # no newline follows the last passage
            taken[file], passages[file], size = of_file, longer, new_size
            seen.add(body)
        elif hit.score > 0:
            least = max(least, hit.score * _ABOUT_AS_GOOD)
        if budget - size < _LEAST_TOKENS:
            break
    found = [passage for of_file in passages.values() for passage in of_file]
    if hits and hits[0] not in taken.get((hits[0].source, hits[0].path), ()):
        found = _cut(_passages(hits[:1])[0], budget) or found
    context = Context(query, len(hits), budget, 0, tuple(found))
    return replace(context, tokens=_tokens(context.markdown))


def _size(passages: Sequence[ContextPassage]) -> int:
    """Tokens of passages, each with a newline behind it; together they have no more."""
    return sum(passage.tokens + 1 for passage in passages)


def _passages(of_file: Sequence[Hit]) -> list[ContextPassage]:
    """Hits of one file in reading order, those that touch made one."""
    runs: list[list[Hit]] = []
    for hit in sorted(of_file, key=lambda hit: (hit.start_line, hit.start_byte or 0, -hit.end_line)):
        if runs and _touch(runs[-1], hit):
            runs[-1].append(hit)
        else:
            runs.append([hit])
    return [_joined(run) for run in runs]


def _touch(run: Sequence[Hit], hit: Hit) -> bool:
    """Whether a chunk begins within others of its file, or right behind them."""
    ends = [one.end_byte for one in run if one.end_byte is not None]
    return bool(ends) and hit.start_byte is not None and hit.start_byte <= max(ends)


def _joined(run: Sequence[Hit]) -> ContextPassage:
    """One passage of chunks that touch."""
    first, best = run[0], max(run, key=lambda hit: hit.score)
    text = _text(run)
    body = text.strip("\n")
    start = first.start_line + len(text) - len(text.lstrip("\n"))
    end = max(hit.end_line for hit in run)
    if first.start_line + text.removesuffix("\n").count("\n") == end:  # not where a document was transformed
        end = start + body.count("\n")
    names = dict.fromkeys(name for hit in run if (name := hit.title))
    return _counted(
        ContextPassage(
            source=first.source,
            path=first.path,
            start_line=start,
            end_line=end,
            kind=", ".join(dict.fromkeys(hit.chunk_type for hit in run)),
            name=", ".join(names) or None,
            language=first.language,
            text=body,
            tokens=0,
            chunk_ids=tuple(hit.chunk_id for hit in run),
            stale=first.stale,
            page=first.page,
            score=best.score,
            line=best.line,
        )
    )


def _text(run: Sequence[Hit]) -> str:
    """The texts of chunks that touch, what they share once."""
    text, end = run[0].text, run[0].end_byte or 0
    for hit in run[1:]:
        if hit.start_byte is not None and hit.end_byte is not None and hit.end_byte > end:
            text += hit.text.encode()[end - hit.start_byte :].decode()
            end = hit.end_byte
    return text


def _counted(passage: ContextPassage) -> ContextPassage:
    return replace(passage, tokens=_tokens(_as_markdown(passage)))


@lru_cache(maxsize=1024)  # a passage that no further chunk touches is counted again with each that is taken
def _tokens(text: str) -> int:
    return count_tokens([text])[0]


def _cut(passage: ContextPassage, budget: int) -> list[ContextPassage]:
    """As many of a passage's first lines as fit; none where hardly anything does."""
    lines = passage.text.split("\n")
    fits, too_many = 0, len(lines)
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        if _beginning(passage, lines[:middle]).tokens <= budget:
            fits = middle
        else:
            too_many = middle
    return [_beginning(passage, lines[:fits])] if fits and budget >= _LEAST_TOKENS else []


def _beginning(passage: ContextPassage, lines: Sequence[str]) -> ContextPassage:
    text = "\n".join([*lines, _CUT])
    return _counted(replace(passage, text=text, end_line=passage.start_line + len(lines) - 1, is_cut=True))


def _as_markdown(passage: ContextPassage) -> str:
    name = in_line(passage.name or "").replace("`", "'")
    what = " ".join(filter(None, (passage.kind, f"`{name}`" if name else "")))
    notes = [] if passage.page is None else [f"page {passage.page}"]
    notes += [CHANGED] if passage.stale else []
    notes += ["cut"] if passage.is_cut else []
    about = "; ".join([what, *([passage.language] if passage.language else []), *notes])
    fence = fence_around(passage.text)
    place = f"{passage.source} {in_line(passage.path)}:{passage.start_line}-{passage.end_line}"
    return f"## {place}\n\n{about}\n\n{fence}{passage.language or ''}\n{passage.text}\n{fence}\n"


@spanned("gather")
def gathered(pool: Pool, query: str, hits: Sequence[Hit], warn: Callable[[str], None] = ignore_warning) -> list[Hit]:
    """Hits, and what the graph leads to from the best of them, in the order in which they are worth reading.

    Args:
        pool: where they came from.
        query: what was asked.
        hits: best first.
        warn: called with why the graph has no part in it.
    """
    shares = _shares(pool, hits, warn)
    further = _further(pool, query, hits, shares)
    gain = _GAIN * hits[0].score / max(shares.values()) if shares else 0.0
    linked = [_plus(hit, gain * shares.get(hit.chunk_id, 0.0)) for hit in (*hits, *further)]
    return sorted(linked, key=lambda hit: -hit.score)


def _shares(pool: Pool, hits: Sequence[Hit], warn: Callable[[str], None]) -> dict[str, float]:
    """How much of what begins at the best hits arrives at each chunk that is near; nothing where there is no graph."""
    if not any(source.graph for source in pool.reader.generation.sources.values()):
        return {}
    floor = hits[_SEEDS].score if len(hits) > _SEEDS else 0.0  # the best are often little better than the next
    try:
        return walk(pool.reader.links, {hit.chunk_id: max(hit.score - floor, 0.0) for hit in hits[:_SEEDS]})
    except DamagedStoreError as error:
        warn(f"{error}; what is found is not followed in the graph")
        return {}


def _further(pool: Pool, query: str, hits: Sequence[Hit], shares: Mapping[str, float]) -> list[Hit]:
    """The chunks that only the graph found: each counts as the last hit, before it gains what the graph gives it."""
    known = {hit.chunk_id for hit in hits}
    with reading_stores():
        others = {one: share for one, share in shares.items() if one not in known}
        near = candidates.meeting(replace(pool, limit=_FURTHER), others)
        scored = [Scored.of(chunk_id, (Signal(_LAST, hits[-1].score),)) for chunk_id, _ in near]
        rows = rows_of(pool.reader, scored)
    find = snippets.of_words(frozenset(stems(understand(query).terms)))
    return [hit_of(rows[one.chunk_id], one, find, is_weak=hits[0].is_weak) for one in scored]


def _plus(hit: Hit, contribution: float) -> Hit:
    """A hit with what the graph adds to it, if it does."""
    if not contribution:
        return hit
    signals = (*hit.signals, Signal(GRAPH, contribution))
    return replace(hit, score=hit.score + contribution, signals=signals)
