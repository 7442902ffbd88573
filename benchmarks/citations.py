"""Measure whether the citation check tells right citations from wrong ones.

    python -m benchmarks.citations BENCH CORPORA

BENCH has `questions/repos.json` and `questions/NAME.jsonl`; CORPORA has each repository by name at its pinned revision.
A claim is a sentence of a reference answer that names lines of a gold file; its path and line numbers are removed,
because a citation mark replaces them. A right citation points to these lines. A wrong one points to another passage in
the same question's context (8,000 tokens) without gold lines, as a confused model would. Each claim counts once,
regardless of the number of its wrong citations.

The score of a citation is the share of the claim that its passage covers, minus half of the best other passage's share.
AUC is the probability that a right citation scores above a wrong one. The last column uses only the share of a claim's
identifiers in the cited lines. All parameters were chosen on flask and sqlfluff. “Gold lines absent” checks wrong
citations as if retrieval had missed the right lines, so that no better passage is available.
"""

import argparse
import json
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from benchmarks.pipeline import index
from docindex_dagster.answering.citations import (
    LEAST_OF_BEST,
    Evidence,
    SearchableText,
    evidence_of,
    is_supported,
    shares,
)
from docindex_dagster.core.errors import QueryError
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.search.context import pack
from docindex_dagster.search.engine import search
from docindex_dagster.search.lookup import find_chunks
from docindex_dagster.search.model import title
from docindex_dagster.stores.reader import Reader

CHOSEN_ON = ("flask", "sqlfluff")
_BUDGET, _CANDIDATES = 8000, 80
_FENCE = re.compile(r"^(\s*)(```|~~~).*?^\s*\2\s*$", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*+]|\d+[.)])\s)")
_SENTENCE = re.compile(r"(?<=[.!?:;])\s+(?=[A-Z`*\"(])")
_FILE = r"`?[\w./-]+\.(?:py|rst|md|toml|cfg|txt)`?"
_NAMED = re.compile(r"`?([\w./-]+\.\w{2,4})\b`?")
_DASH = "[-\N{EN DASH}]"
_NUMBER = rf"~?\d+(?:\s*{_DASH}\s*\d+)?"
_NUMBERS = rf"\blines?\s+{_NUMBER}(?:(?:\s*,\s*and|\s*,|\s+and|\s*&)\s*{_NUMBER})*"
_LINES = re.compile(_NUMBERS, re.IGNORECASE)
_RANGE = re.compile(rf"(\d+)(?:\s*{_DASH}\s*(\d+))?")
_PLACES = (
    re.compile(r"\s*\([^()]*(?:\blines?\s+~?\d|\.(?:py|rst|md|toml)\b)[^()]*\)"),
    re.compile(rf"(?:\b(?:at|in|on|from|see|of)\s*)?{_FILE}(?:[,:]?\s*(?:(?:at|on)\s+)?{_NUMBERS}|:\d+(?:-\d+)?)?"),
    re.compile(rf"(?:\b(?:at|on|in)\s+)?{_NUMBERS}", re.IGNORECASE),
)

Lines: TypeAlias = list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Place:
    """Lines of a file with their analyzed texts."""

    path: str
    lines: Lines
    searched: SearchableText

    def meets(self, path: str, lines: Lines) -> bool:
        """Return whether the line ranges overlap."""
        return self.path == path and any(a <= d and c <= b for a, b in self.lines for c, d in lines)


@dataclass(frozen=True, slots=True)
class Case:
    """A claim, its gold lines, and the other passages of its question, including the wrong ones."""

    evidence: Evidence
    right: SearchableText
    others: list[SearchableText]
    wrong: list[int]


@dataclass(frozen=True, slots=True)
class Judged:
    """A citation with its score, its share of identifiers, and whether the check supports it."""

    score: float
    plain: float
    is_kept: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """The right citation of a claim, and its wrong citations with and without the right lines among the passages."""

    right: Judged
    wrong: list[Judged]
    alone: list[Judged]


def sentences(answer: str) -> Iterator[str]:
    """Return the sentences and list items of an answer, without code blocks."""
    for block in _BLOCK.split(_FENCE.sub("\n\n", answer)):
        yield from filter(None, _SENTENCE.split(" ".join(block.split())))


def cited(sentence: str, gold: dict[str, Lines]) -> dict[str, Lines]:
    """Return the gold lines that a sentence names, by file, if the file is unambiguous."""
    named = _NAMED.findall(sentence)
    files = [file for file in gold if any(file == name or file.endswith(f"/{name}") for name in named)]
    found: dict[str, Lines] = {}
    for numbers in _LINES.findall(sentence):
        for first, last in _RANGE.findall(numbers):
            lines = (int(first), int(last or first))
            meant = [file for file in (files if named else gold) if lines in gold[file]]
            if len(meant) == 1:
                found.setdefault(meant[0], []).append(lines)
    return found


def without_places(sentence: str) -> str:
    """Remove paths and line numbers from a sentence."""
    for place in _PLACES:
        sentence = place.sub("", sentence)
    return sentence


def cases(row: dict[str, Any], reader: Reader, root: Path) -> Iterator[Case]:
    """Yield the claims of a reference answer."""
    gold: dict[str, Lines] = {path: [(a, b) for a, b in lines] for path, lines in row["gold"].items()}
    hits = search(reader, row["question"], StaticEmbedder, top_k=_CANDIDATES)
    passages = [
        Place(one.path, [(one.start_line, one.end_line)], SearchableText.of(one.text, one.name, one.path))
        for one in pack(row["question"], hits, _BUDGET).passages
    ]
    for sentence in sentences(row["answer"]):
        for path, lines in cited(sentence, gold).items():
            others = [place for place in passages if not place.meets(path, lines)]
            wrong = [at for at, place in enumerate(others) if not _is_gold(place, gold)]
            if wrong and (right := _right(reader, root, path, lines)):
                evidence = evidence_of(without_places(sentence))
                yield Case(evidence, right, [place.searched for place in others], wrong)


def _is_gold(place: Place, gold: dict[str, Lines]) -> bool:
    """Return whether a passage has a gold line, or belongs to a gold file without line ranges."""
    return any(place.meets(path, lines) or (place.path == path and not lines) for path, lines in gold.items())


def _right(reader: Reader, root: Path, path: str, lines: Lines) -> SearchableText | None:
    """Return lines of a file under the names of their chunks."""
    try:
        rows = [row for row in find_chunks(reader, path) if row["path"] == path]
    except QueryError:
        return None  # a file that is not indexed has no passages
    of_file = (root / path).read_text().split("\n")
    text = "\n".join("\n".join(of_file[first - 1 : last]) for first, last in lines)
    meant = [row for row in rows if any(row["start_line"] <= b and a <= row["end_line"] for a, b in lines)]
    names = dict.fromkeys(title(row["qualified_name"], row["heading_path"]) for row in meant)
    return SearchableText.of(text, ", ".join(filter(None, names)), path)


def judge(case: Case) -> Outcome:
    """Check the right citation of a claim and all wrong ones."""
    together = shares(case.evidence, [*case.others, case.right])
    alone = shares(case.evidence, case.others)
    return Outcome(
        _judged(case, together, len(case.others)),
        [_judged(case, together, at) for at in case.wrong],
        [_judged(case, alone, at) for at in case.wrong],
    )


def _judged(case: Case, have: Sequence[float], at: int) -> Judged:
    passage = [*case.others, case.right][at]
    best = max((*have[:at], *have[at + 1 :]), default=0.0)
    names = case.evidence.identifiers
    plain = len(names & frozenset(re.findall(r"\w+", passage.text))) / len(names) if names else 0.0
    kept = is_supported(have[at], best, quotes_found=passage.contains_quote(case.evidence))
    return Judged(have[at] - LEAST_OF_BEST * best, plain, kept)


def auc(right: Iterable[float], wrong: Iterable[Sequence[float]]) -> float:
    """Return the probability that a right citation scores above a wrong one, with equal weight for each claim."""
    scores = np.array(list(right))
    above = [
        ((scores[:, None] > of_claim).mean() + 0.5 * (scores[:, None] == of_claim).mean())
        for of_claim in map(np.array, wrong)
    ]
    return float(np.mean(above))


def row_of(name: str, found: Sequence[Case]) -> str:
    """Return a row of the table."""
    outcomes = [judge(case) for case in found if case.evidence.is_checkable]
    unchecked = 1 - len(outcomes) / len(found)
    rights = [one.right for one in outcomes]
    figures = (
        auc((one.score for one in rights), ([wrong.score for wrong in one.wrong] for one in outcomes)),
        float(np.mean([one.is_kept for one in rights])),
        float(np.mean([np.mean([not wrong.is_kept for wrong in one.wrong]) for one in outcomes])),
        auc((one.score for one in rights), ([wrong.score for wrong in one.alone] for one in outcomes)),
        float(np.mean([np.mean([not wrong.is_kept for wrong in one.alone]) for one in outcomes])),
        auc((one.plain for one in rights), ([wrong.plain for wrong in one.wrong] for one in outcomes)),
    )
    score, kept, flagged, alone, flagged_alone, plain = figures
    return (
        f"{name:<34}{len(found):>8}{unchecked:>11.1%}{score:>8.3f}{kept:>8.1%}{flagged:>9.1%}"
        f"{alone:>9.3f}{flagged_alone:>9.1%}{plain:>9.3f}"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", type=Path)
    parser.add_argument("corpora", type=Path)
    arguments = parser.parse_args()
    names = [one["name"] for one in json.loads((arguments.bench / "questions" / "repos.json").read_text())]
    found: dict[str, list[Case]] = {}
    for name in names:
        rows = (arguments.bench / "questions" / f"{name}.jsonl").read_text().splitlines()
        with tempfile.TemporaryDirectory() as home:
            root = arguments.corpora / name
            reader = index(root, Path(home)).reader
            found[name] = [case for row in rows for case in cases(json.loads(row), reader, root)]
    columns = f"{'claims':>8}{'unchecked':>11}{'AUC':>8}{'kept':>8}{'flagged':>9}{'gold lines absent':>18}{'plain':>9}"
    print(f"{'':<34}{columns}")
    for name, of_repository in found.items():
        print(row_of(name, of_repository))
    for is_chosen, label in ((True, "chosen on"), (False, "held out")):
        group = [name for name in names if (name in CHOSEN_ON) is is_chosen]
        print(row_of(f"{label}: {', '.join(group)}", [case for name in group for case in found[name]]))


if __name__ == "__main__":
    main()
