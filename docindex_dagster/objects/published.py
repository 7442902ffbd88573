"""What is published in all cells, for those who need no stores: sensors, and reports on how sources stand."""

import json
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from docindex_dagster.core.access import writing
from docindex_dagster.core.files import replacing
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import exclusive
from docindex_dagster.core.settings import Settings
from docindex_dagster.objects import cell, snapshots
from docindex_dagster.objects.cell import OpenCell
from docindex_dagster.objects.cells import home_of
from docindex_dagster.objects.snapshots import Manifest

_FOLDER = "published"


def cells(settings: Settings) -> list[OpenCell]:
    """All cells as they are published, none of them open for publishing.

    Raises:
        ObjectStoreError: the store does not answer.
    """
    bucket, count = cell.bucket_of(settings), settings.storage.cells
    return [
        OpenCell(bucket, home_of(settings, number), number, count, snapshots.read(bucket, number) or Manifest())
        for number in range(count)
    ]


def known(settings: Settings) -> Settings:
    """The settings with a home that says what is published of all cells, and that holds no stores.

    A source that is about to be taken out counts as gone.

    Raises:
        ObjectStoreError: the store does not answer.
    """
    all_cells = cells(settings)
    leaving = {pointer.source for one in all_cells for pointer in one.pending() if pointer.is_withdrawn}
    layout = Layout(settings.home).inner(_FOLDER)
    with writing(settings), exclusive(layout.publication_lock, "who asks what is published", lambda _: None):
        for file in (layout.current, layout.next):
            _write(file, _merged(_values(all_cells, file.name), leaving))
        _write(layout.catalog, list(chain.from_iterable(_values(all_cells, layout.catalog.name))))
    return settings.model_copy(update={"home": layout.home})


def _values(all_cells: Iterable[OpenCell], name: str) -> Iterator[Any]:
    """What the pointer of a name says in each cell that has it."""
    for one in all_cells:
        if text := one.manifest.pointers.get(name):
            yield json.loads(text)


def _write(file: Path, value: Any) -> None:
    """Let a file hold a value; no file for an empty one."""
    text = json.dumps(value)
    if not value:
        file.unlink(missing_ok=True)
    elif not file.is_file() or file.read_text(encoding="utf-8") != text:
        with replacing(file) as temporary:
            temporary.write_text(text, encoding="utf-8")


def _merged(generations: Iterable[dict[str, Any]], leaving: set[str]) -> dict[str, Any]:
    """One generation with the sources of all; empty where there is none."""
    merged: dict[str, Any] = {}
    for generation in generations:
        sources = {**merged.get("sources", {}), **generation["sources"]}
        merged = {**generation, **merged, "sources": sources}
    if merged:
        merged["sources"] = {key: one for key, one in merged["sources"].items() if key not in leaving}
    return merged
