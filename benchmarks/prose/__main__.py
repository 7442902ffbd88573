"""Measure lost prose and remaining markup in loaded documents.

    python -m benchmarks.prose FOLDER... [--format LOADER]... [--differences N]

Each document of a folder that discovery would index is loaded. The words of its blocks are compared with those of its
source, as multisets; words are runs of letters and digits. Here the source is read line by line, without a parser; each
rule in `rst.py`, `mdx.py` and `pages.py` documents the text that it excludes. A word that only the source has is lost.
A word that only the blocks have is noise, and so is each mark of the format outside code.
"""

import argparse
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.prose.lines import Line, as_it_is
from benchmarks.prose.mdx import read_mdx
from benchmarks.prose.pages import read_html, read_notebook
from benchmarks.prose.rst import read_rst
from docindex_dagster.documents.load import load_document
from docindex_dagster.documents.model import Block
from docindex_dagster.sources.discovery import discover
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.text import read_document

_READERS: dict[str, Callable[[str], Iterable[Line]]] = {
    "rst": read_rst,
    "mdx": read_mdx,
    "html": read_html,
    "notebook": read_notebook,
}
_WORD = re.compile(r"[^\W_]+")
_MARKUP = {
    "rst": re.compile(r"^\s*\.\.(?:\s|$)|(?<=\S)::\s*$|\A:[\w-]+:(?:\s|$)|:[a-z:]+:`", re.MULTILINE),
    "mdx": re.compile(
        r"</?[A-Z][\w.]*[\s/>]|/>|\{/\*|\*/\}|\{['\"] *['\"]\}"
        r"|^\s*import .* from ['\"]|^\s*export (?:const|default)\b",
        re.MULTILINE,
    ),
}
_CODE_SPAN = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")
# Text that loaders add: the languages of fences, and the numbers of items in HTML.
_FENCE = re.compile(r"^`{3,}.*")
_ITEM_NUMBER = re.compile(r"^\s*\d+\. ")
_ABOUT_MARKUP = "rst:directive"  # the start of a directive's description, whose name is markup
_SHOWN_CHARACTERS = 160


@dataclass(slots=True)
class Tally:
    """The totals of the documents in one format."""

    pages: int = 0
    words: int = 0
    lost: int = 0
    noise: int = 0
    pages_with_loss: int = 0
    as_text: int = 0
    characters: int = 0
    seconds: float = 0.0
    differences: list[str] = field(default_factory=list)

    def columns(self) -> tuple[object, ...]:
        """Return the cells of the row."""
        share = f"{self.lost / max(self.words, 1):.3%}"
        speed = f"{self.characters / 1e6 / self.seconds:.2f}"
        return self.pages, self.words, self.lost, share, self.noise, self.pages_with_loss, self.as_text, speed


def compare(text: str, path: str, loader: str, tally: Tally) -> None:
    """Load a document and add the results to the totals."""
    started = time.perf_counter()
    document = load_document(text, path, loader)
    tally.seconds += time.perf_counter() - started
    tally.pages += 1
    tally.characters += len(text)
    if document.fallback is not None:
        tally.as_text += 1
        tally.differences.append(f"{path}: as text: {document.fallback}")
        return
    blocks = [block for section in document.sections for block in section.blocks]
    source = [*_READERS.get(loader, as_it_is)(text)]
    shown = [(block.start_line, line) for block in blocks for line in _shown(block, loader).split("\n")]
    expected, loaded = _count(source), _count(shown)
    marks = [*_marks(blocks, loader)]
    tally.words += expected.total()
    tally.lost += (expected - loaded).total()
    tally.noise += (loaded - expected).total() + len(marks)
    tally.pages_with_loss += bool(expected - loaded)
    tally.differences += [f"{path}:{place}" for place in _places("lost", expected - loaded, source)]
    tally.differences += [f"{path}:{place}" for place in _places("noise", loaded - expected, shown)]
    tally.differences += [f"{path}:{number}: mark: {around!r}" for number, around in marks]


def _count(lines: Sequence[Line]) -> Counter[str]:
    return Counter(word for _, line in lines for word in _WORD.findall(line))


def _shown(block: Block, loader: str) -> str:
    """Return the text of a block without its loader's additions."""
    if loader == "html" and block.kind == "item":
        return _ITEM_NUMBER.sub("", block.text)
    return _FENCE.sub("", block.text) if loader in {"rst", "html", "notebook"} and block.kind == "code" else block.text


def _marks(blocks: Sequence[Block], loader: str) -> Iterator[Line]:
    """Yield marks of the format outside code, with their context."""
    pattern = _MARKUP.get(loader)
    for block in blocks if pattern else ():
        if block.kind not in {"code", "front_matter"} and not block.text.startswith(_ABOUT_MARKUP):
            text = _CODE_SPAN.sub("", block.text)
            for match in pattern.finditer(text) if pattern else ():
                yield block.start_line, text[max(match.start() - 30, 0) : match.end() + 50]


def _places(what: str, words: Counter[str], lines: Sequence[Line]) -> Iterator[str]:
    """Return lines with these words, those with the most first."""
    left = Counter(words)
    for number, line in sorted(lines, key=lambda line: -len(words.keys() & _WORD.findall(line[1]))):
        found = Counter(_WORD.findall(line)) & left
        left -= found
        if found:
            yield f"{number}: {what} {' '.join(found)}: {line.strip()[:_SHOWN_CHARACTERS]}"


def measure(folder: Path, loaders: Sequence[str]) -> dict[str, Tally]:
    """Compare all documents of a folder, by loader."""
    files = discover(Source(f"library/{folder.name}", "library", folder.name, folder, include_code=False))
    tallies: dict[str, Tally] = {}
    for row in files.select(["path", "loader", "skipped_reason"]).to_pylist():
        loader = row["loader"]
        if row["skipped_reason"] is None and loader != "code" and (not loaders or loader in loaders):
            text = read_document(folder, row["path"])[0].text
            compare(text, row["path"], loader, tallies.setdefault(loader, Tally()))
    return tallies


def main() -> None:
    """Print a row for each folder and format."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--format", action="append", default=[], help="rst, mdx, markdown, html, ...; default: all")
    parser.add_argument("--differences", type=int, default=0, metavar="N", help="print N examples for each row")
    arguments = parser.parse_args()
    row = "{:<40}{:<10}{:>6}{:>9}{:>6}{:>9}{:>6}{:>10}{:>8}{:>7}"
    print(row.format("folder", "format", "pages", "words", "lost", "share", "noise", "with loss", "as text", "MB/s"))
    for folder in [path.absolute() for path in arguments.folders]:
        for loader, tally in sorted(measure(folder, arguments.format).items()):
            print(row.format("/".join(folder.parts[-3:])[-39:], loader, *tally.columns()), flush=True)
            for difference in tally.differences[: arguments.differences]:
                print(f"    {difference}")


if __name__ == "__main__":
    main()
