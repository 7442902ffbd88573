"""Blocks in a row become sections with heading paths."""

from collections.abc import Iterable

from docindex_dagster.documents.model import Block, Section


def build_sections(blocks: Iterable[Block]) -> tuple[Section, ...]:
    """Cut a document's blocks before each heading."""
    sections: list[Section] = []
    open_headings: list[Block] = []
    current: list[Block] = []
    for block in blocks:
        if block.kind == "heading":
            if current:
                sections.append(_section(open_headings, current))
            while open_headings and open_headings[-1].level >= block.level:
                open_headings.pop()
            open_headings.append(block)
            current = []
        current.append(block)
    if current:
        sections.append(_section(open_headings, current))
    return tuple(sections)


def _section(open_headings: list[Block], blocks: list[Block]) -> Section:
    named = [heading for heading in open_headings if heading.title]
    return Section(
        heading_path=tuple(heading.title for heading in named),
        level=open_headings[-1].level if open_headings else 0,
        section=next((heading.title for heading in named if heading.level == 1), None),
        subsection=next((heading.title for heading in reversed(named) if heading.level in {2, 3}), None),
        blocks=tuple(blocks),
    )
