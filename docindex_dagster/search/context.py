"""The best chunks packed into a budget of tokens, as a text to read before answering: for prompts.

What was said once is not said again: overlapping and adjoining chunks of a file become one passage, and a text that
stands in several places is taken from the first. Passages come in reading order: files by their best chunk, and within
a file from its top.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from docindex_dagster.search.model import Hit
from docindex_dagster.tokenizer import count_tokens

_FENCE = re.compile(r"`{3,}")
_CUT = "…"
_ABOUT_AS_GOOD = 0.7  # of the score of what did not fit
_LEAST_TOKENS = 32  # a smaller rest of a chunk tells nothing


@dataclass(frozen=True, slots=True)
class ContextPassage:
    """Lines of a file, with what they are; `tokens` counts them as `markdown` writes them."""

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


@dataclass(frozen=True, slots=True)
class Context:
    """What fits into a budget, in reading order; `tokens` are those of `markdown`."""

    query: str
    budget: int
    tokens: int
    passages: tuple[ContextPassage, ...]

    @property
    def markdown(self) -> str:
        """All passages, each under a heading that says where it is from and what it is."""
        return "\n".join(map(_as_markdown, self.passages))


def pack(query: str, hits: Sequence[Hit], budget: int) -> Context:
    """Take hits, best first, as long as they fit.

    Where one does not, smaller ones may take its place that are about as good. The first is cut, at a line, where it
    alone is larger than the budget. Tokens are those of the default model, and count headings and fences.

    Args:
        query: what was asked.
        hits: best first.
        budget: tokens, at most.
    """
    taken: list[Hit] = []
    seen: set[str] = set()
    passages: list[ContextPassage] = []
    least = -math.inf  # the score of what may still be taken
    for hit in hits:
        body = hit.text.strip()
        if body in seen or hit.score < least:
            continue
        longer = _passages([*taken, hit])
        if _size(longer) <= budget:
            taken.append(hit)
            seen.add(body)
            passages = longer
        else:
            least = max(least, hit.score * _ABOUT_AS_GOOD)
    if hits and hits[0] not in taken:
        passages = _cut(_passages([hits[0]])[0], budget) or passages
    return Context(query, budget, _size(passages), tuple(passages))


def _size(passages: Sequence[ContextPassage]) -> int:
    """Tokens of passages with a newline between each two, which is a token of its own."""
    return sum(passage.tokens for passage in passages) + max(0, len(passages) - 1)


def _passages(hits: Sequence[Hit]) -> list[ContextPassage]:
    """Hits in reading order, those that touch made one."""
    files: dict[tuple[str, str], list[Hit]] = {}
    for hit in hits:
        files.setdefault((hit.source, hit.path), []).append(hit)
    found = []
    for of_file in files.values():
        runs: list[list[Hit]] = []
        for hit in sorted(of_file, key=lambda hit: (hit.start_line, hit.start_byte or 0, -hit.end_line)):
            if runs and _touch(runs[-1], hit):
                runs[-1].append(hit)
            else:
                runs.append([hit])
        found += [_joined(run) for run in runs]
    return found


def _touch(run: Sequence[Hit], hit: Hit) -> bool:
    """Whether a chunk begins within others of its file, or right behind them."""
    ends = [one.end_byte for one in run if one.end_byte is not None]
    return bool(ends) and hit.start_byte is not None and hit.start_byte <= max(ends)


def _joined(run: Sequence[Hit]) -> ContextPassage:
    """One passage of chunks that touch."""
    first = run[0]
    text = _text(run)
    names = dict.fromkeys(name for hit in run if (name := hit.qualified_name or " > ".join(hit.heading_path)))
    return _counted(
        ContextPassage(
            source=first.source,
            path=first.path,
            start_line=first.start_line + len(text) - len(text.lstrip("\n")),
            end_line=max(hit.end_line for hit in run),
            kind=", ".join(dict.fromkeys(hit.chunk_type for hit in run)),
            name=", ".join(names) or None,
            language=first.language,
            text=text.strip("\n"),
            tokens=0,
            chunk_ids=tuple(hit.chunk_id for hit in run),
            stale=first.stale,
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
    what = " ".join(filter(None, (passage.kind, f"`{passage.name}`" if passage.name else "")))
    notes = ["changed on disk since it was indexed"] if passage.stale else []
    notes += ["cut"] if passage.is_cut else []
    about = "; ".join([what, *([passage.language] if passage.language else []), *notes])
    longest = max((len(run) for run in _FENCE.findall(passage.text)), default=2)
    fence = "`" * (longest + 1)
    place = f"{passage.source} {passage.path}:{passage.start_line}-{passage.end_line}"
    return f"## {place}\n\n{about}\n\n{fence}{passage.language or ''}\n{passage.text}\n{fence}\n"
