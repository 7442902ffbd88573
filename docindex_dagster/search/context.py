"""The best chunks packed into a token budget, as a text for prompts.

Nothing is repeated: overlapping and adjacent chunks of a file become one passage, and duplicate text is kept once.
Passages are in reading order: files by their best chunk, and top to bottom within a file. Before packing,
`add_linked_chunks` adds chunks that the graph links to the best hits: callees, callers, base classes, and tests that
show their use.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from docindex_dagster.core.errors import DamagedStoreError
from docindex_dagster.core.safe_text import fence_around, on_one_line
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
_MIN_SCORE_RATIO = 0.7  # minimum fraction of the score of a hit that did not fit
_MIN_TOKENS = 32  # a shorter remainder of a chunk is useless
_LAST = "last"
_SEEDS = 10  # best hits from which graph walks start
_MAX_LINKED = 25  # maximum number of chunks to add
_GAIN = 0.5  # boost of the chunk that the graph reaches most, as a fraction of the best score


@dataclass(frozen=True, slots=True)
class ContextPassage:
    """Lines of a file and their description; `tokens` counts the passage as formatted by `markdown`.

    `line` is the number of the best matching line in the file, or 0 if unknown. `stale` says whether the file on disk
    differs from the indexed one; None if unknown.
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
    """The passages of `found` hits that fit into a budget, in reading order; `tokens` counts `markdown`."""

    query: str
    found: int
    budget: int
    tokens: int
    passages: tuple[ContextPassage, ...]

    @property
    def markdown(self) -> str:
        """All passages, each under a heading with its location and description."""
        return "\n".join(map(_as_markdown, self.passages))


def empty_reason(context: Context) -> str:
    """Return why a context is empty."""
    if not context.found:
        return "Nothing found. Try other words, or fewer filters."
    return f"The best result does not fit into {context.budget} tokens. Use a larger budget."


@spanned("pack context")
def pack(query: str, hits: Sequence[Hit], budget: int) -> Context:
    """Select hits, best first, while they fit.

    If a hit does not fit, smaller hits with a similar score may take its place. If the first hit alone exceeds the
    budget, it is cut at a line. Token counts are those of `tokenizer`, and include headings and fences.

    Args:
        query: the query.
        hits: best first.
        budget: maximum number of tokens.
    """
    selected: dict[tuple[str, str], list[Hit]] = {}
    passages: dict[tuple[str, str], list[ContextPassage]] = {}
    seen: set[str] = set()
    size = 0
    min_score = -math.inf  # minimum score of further hits
    for hit in hits:
        body = hit.text.strip()
        if body in seen or hit.score < min_score:
            continue
        file = (hit.source, hit.path)
        of_file = [*selected.get(file, ()), hit]
        extended = _passages(of_file)
        new_size = size - _size(passages.get(file, ())) + _size(extended)
        if new_size - 1 <= budget:  # no newline after the last passage
            selected[file], passages[file], size = of_file, extended, new_size
            seen.add(body)
        elif hit.score > 0:
            min_score = max(min_score, hit.score * _MIN_SCORE_RATIO)
        if budget - size < _MIN_TOKENS:
            break
    found = [passage for of_file in passages.values() for passage in of_file]
    if hits and hits[0] not in selected.get((hits[0].source, hits[0].path), ()):
        found = _cut(_passages(hits[:1])[0], budget) or found
    context = Context(query, len(hits), budget, 0, tuple(found))
    return replace(context, tokens=_tokens(context.markdown))


def _size(passages: Sequence[ContextPassage]) -> int:
    """Return an upper bound of the tokens of passages, each followed by a newline."""
    return sum(passage.tokens + 1 for passage in passages)


def _passages(of_file: Sequence[Hit]) -> list[ContextPassage]:
    """Return the passages for hits of one file in reading order; merges hits that touch."""
    runs: list[list[Hit]] = []
    for hit in sorted(of_file, key=lambda hit: (hit.start_line, hit.start_byte or 0, -hit.end_line)):
        if runs and _touch(runs[-1], hit):
            runs[-1].append(hit)
        else:
            runs.append([hit])
    return [_merge(run) for run in runs]


def _touch(run: Sequence[Hit], hit: Hit) -> bool:
    """Return whether a chunk starts within the others, or right after them."""
    ends = [other.end_byte for other in run if other.end_byte is not None]
    return bool(ends) and hit.start_byte is not None and hit.start_byte <= max(ends)


def _merge(run: Sequence[Hit]) -> ContextPassage:
    """Merge chunks that touch into a passage."""
    first, best = run[0], max(run, key=lambda hit: hit.score)
    text = _text(run)
    body = text.strip("\n")
    start = first.start_line + len(text) - len(text.lstrip("\n"))
    end = max(hit.end_line for hit in run)
    if first.start_line + text.removesuffix("\n").count("\n") == end:  # not for converted documents
        end = start + body.count("\n")
    names = dict.fromkeys(name for hit in run if (name := hit.title))
    return _with_token_count(
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
    """Join the texts of chunks that touch, without repeating their overlap."""
    text, end = run[0].text, run[0].end_byte or 0
    for hit in run[1:]:
        if hit.start_byte is not None and hit.end_byte is not None and hit.end_byte > end:
            text += hit.text.encode()[end - hit.start_byte :].decode()
            end = hit.end_byte
    return text


def _with_token_count(passage: ContextPassage) -> ContextPassage:
    return replace(passage, tokens=_tokens(_as_markdown(passage)))


@lru_cache(maxsize=1024)  # each added hit recounts the other passages of its file
def _tokens(text: str) -> int:
    return count_tokens([text])[0]


def _cut(passage: ContextPassage, budget: int) -> list[ContextPassage]:
    """Cut a passage to as many of its first lines as fit; return no passage if hardly any do."""
    lines = passage.text.split("\n")
    fits, too_many = 0, len(lines)
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        if _first_lines(passage, lines[:middle]).tokens <= budget:
            fits = middle
        else:
            too_many = middle
    return [_first_lines(passage, lines[:fits])] if fits and budget >= _MIN_TOKENS else []


def _first_lines(passage: ContextPassage, lines: Sequence[str]) -> ContextPassage:
    text = "\n".join([*lines, _CUT])
    return _with_token_count(replace(passage, text=text, end_line=passage.start_line + len(lines) - 1, is_cut=True))


def _as_markdown(passage: ContextPassage) -> str:
    name = on_one_line(passage.name or "").replace("`", "'")
    label = " ".join(filter(None, (passage.kind, f"`{name}`" if name else "")))
    notes = [] if passage.page is None else [f"page {passage.page}"]
    notes += [CHANGED] if passage.stale else []
    notes += ["cut"] if passage.is_cut else []
    description = "; ".join([label, *([passage.language] if passage.language else []), *notes])
    fence = fence_around(passage.text)
    location = f"{passage.source} {on_one_line(passage.path)}:{passage.start_line}-{passage.end_line}"
    return f"## {location}\n\n{description}\n\n{fence}{passage.language or ''}\n{passage.text}\n{fence}\n"


@spanned("gather")
def add_linked_chunks(
    pool: Pool, query: str, hits: Sequence[Hit], warn: Callable[[str], None] = ignore_warning
) -> list[Hit]:
    """Return the hits and the chunks that the graph reaches from the best of them, in order of relevance.

    Args:
        pool: the candidates.
        query: the query.
        hits: best first.
        warn: called with the reason if the graph cannot be used.
    """
    shares = _shares(pool, hits, warn)
    only_linked = _linked_hits(pool, query, hits, shares)
    gain = _GAIN * hits[0].score / max(shares.values()) if shares else 0.0
    linked = [_boost(hit, gain * shares.get(hit.chunk_id, 0.0)) for hit in (*hits, *only_linked)]
    return sorted(linked, key=lambda hit: -hit.score)


def _shares(pool: Pool, hits: Sequence[Hit], warn: Callable[[str], None]) -> dict[str, float]:
    """Return how strongly the graph reaches each chunk near the best hits; empty without a graph."""
    if not any(source.graph for source in pool.reader.generation.sources.values()):
        return {}
    floor = hits[_SEEDS].score if len(hits) > _SEEDS else 0.0  # raw scores of the best hits hardly differ
    try:
        return walk(pool.reader.links, {hit.chunk_id: max(hit.score - floor, 0.0) for hit in hits[:_SEEDS]})
    except DamagedStoreError as error:
        warn(f"{error}. Linked code is left out of the context")
        return {}


def _linked_hits(pool: Pool, query: str, hits: Sequence[Hit], shares: Mapping[str, float]) -> list[Hit]:
    """Return the chunks that only the graph found, each with the score of the last hit before its boost."""
    known = {hit.chunk_id for hit in hits}
    with reading_stores():
        others = {item: share for item, share in shares.items() if item not in known}
        near = candidates.rank_by_scores(replace(pool, limit=_MAX_LINKED), others)
        scored = [Scored.of(chunk_id, (Signal(_LAST, hits[-1].score),)) for chunk_id, _ in near]
        rows = rows_of(pool.reader, scored)
    find = snippets.of_words(frozenset(stems(understand(query).terms)))
    return [hit_of(rows[item.chunk_id], item, find, hits[0].intent, is_weak=hits[0].is_weak) for item in scored]


def _boost(hit: Hit, contribution: float) -> Hit:
    """Return a hit with its boost from the graph."""
    if not contribution:
        return hit
    signals = (*hit.signals, Signal(GRAPH, contribution))
    return replace(hit, score=hit.score + contribution, signals=signals)
