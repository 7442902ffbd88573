"""The sections of a document, and in which of them each line of its chunks stands.

A chunk may hold several small sections, so that their headings are read from its text.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from docindex_dagster.documents.pointers import PlacedPointer, read_pointers
from docindex_dagster.graph.prose import Prose, link_targets, read_prose
from docindex_dagster.graph.source_graph import ANCHOR, ANCHORS, Node, Triple

_LONGEST_TITLE = 200
_Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReadChunk:
    """A chunk of a document: its row, what it says, and the titles above its lines, from each line on."""

    row: Mapping[str, Any]
    prose: Prose
    places: Sequence[tuple[int, _Path]]

    def place(self, line: int) -> tuple[str, str]:
        """The node of the section in which a line of the chunk stands, or of the file, and which of the two."""
        above = (titles for begin, titles in reversed(self.places) if begin <= line)
        titles = next(above, self.places[0][1])  # a line may stand before the first heading
        return section_node(self.row["path"], titles)

    @property
    def pointers(self) -> Iterator[PlacedPointer]:
        """What the text does not show: links and anchors, with the lines of the file."""
        return read_pointers(self.row["pointers"])

    def titled(self, titles: str) -> tuple[str, str]:
        """The node of the section in the chunk that has these titles, or else of that in which the chunk begins."""
        wanted = f"{self.row['path']}#{titles}"
        places = (section_node(self.row["path"], place) for _, place in self.places)
        return next((place for place in places if place[0] == wanted), self.place(0))

    def line(self, line: int) -> int:
        """The line of the file on which a line of the chunk stands; of a document that was transformed, about there."""
        return int(min(self.row["start_line"] + line, self.row["end_line"]))


def section_node(path: str, titles: Sequence[str]) -> tuple[str, str]:
    """The node of a section, or of its file, and its type."""
    return (f"{path}#{' > '.join(titles)}", "section") if titles else (path, "file")


def goes_on(row: Mapping[str, Any]) -> bool:
    """Whether a chunk may begin inside a code block."""
    return bool(row["has_code"] and (row["part_number"] or 1) > 1)


def read_document(rows: Sequence[Mapping[str, Any]]) -> list[ReadChunk]:
    """The chunks of one document, in their order."""
    targets = link_targets(row["text"] for row in rows)
    above: list[tuple[int, str]] = []
    found = []
    for row in rows:
        prose = read_prose(row["text"], goes_on=goes_on(row), targets=targets)
        given = tuple(row["heading_path"] or ())
        places = [*_places(prose, above)] if row["chunk_type"] == "section" else []
        if any(titles[: len(given)] != given for _, titles in places) or not places:
            places = [(0, given)]  # its format has other headings than Markdown
            above = [*enumerate(given, start=1)]
        found.append(ReadChunk(row, prose, places))
    return found


def _places(prose: Prose, above: list[tuple[int, str]]) -> Iterator[tuple[int, _Path]]:
    """From which line of a chunk on which titles are above; `above` goes on from chunk to chunk."""
    headings = prose.headings
    first = min((paragraph.line for paragraph in prose.paragraphs), default=0)
    if not headings or headings[0].line > first:
        yield 0, tuple(title for _, title in above)
    for heading in headings:
        while above and above[-1][0] >= heading.level:
            above.pop()
        above.append((heading.level, _title(heading.text)))
        yield heading.line, tuple(title for _, title in above)


def _title(text: str) -> str:
    return " ".join(text.split())[:_LONGEST_TITLE]


def section_edges(chunks: Sequence[ReadChunk]) -> tuple[list[Node], list[Triple]]:
    """The sections of a document, each in the one around it."""
    nodes: dict[str, Node] = {}
    edges: dict[str, Triple] = {}
    for chunk in chunks:
        row = chunk.row
        of_chunk = row["source"], row["path"], row["chunk_id"]
        for line, titles in chunk.places:
            around = [section_node(row["path"], titles[:depth]) for depth in range(len(titles) + 1)]
            for (parent, child), title in zip(pairwise(around), titles, strict=True):
                nodes.setdefault(child[0], Node(child[0], "section", title, *of_chunk))
                edges.setdefault(child[0], Triple(*parent, "has_section", *child, *of_chunk, chunk.line(line)))
    return [*nodes.values()], [*edges.values()]


def anchors(chunks: Sequence[ReadChunk]) -> Iterator[Node]:
    """The names by which links reach the sections of a document. The name of such a node is the section or file."""
    for chunk in chunks:
        row = chunk.row
        named = [(ANCHOR, title.anchor, chunk.place(title.line)) for title in chunk.prose.headings if title.anchor]
        named += [
            (pointer.kind, pointer.name, chunk.titled(pointer.titles))
            for pointer in chunk.pointers
            if pointer.kind in ANCHORS
        ]
        for kind, name, (place, _) in named:
            yield Node(f"{kind}:{row['path']}#{name}", kind, place, row["source"], row["path"], row["chunk_id"])
