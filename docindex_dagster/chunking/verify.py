"""The rules that every `chunks` table keeps; each is also an asset check."""

from collections.abc import Collection

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.core.errors import VerificationError

UNIQUE, COVERED, SPANS = "ids_are_unique", "files_are_covered", "spans_are_in_their_file"
CHUNK_RULES = {
    UNIQUE: "No two chunks have one id.",
    COVERED: "Every commit, and every file that is still to be indexed when it is cut, has a chunk.",
    SPANS: "Lines and bytes of every chunk are in order and fit its text.",
}
_SHOWN = 3


def verify_chunks(chunks: pa.Table, files: pa.Table, excused: Collection[str] = ()) -> None:
    """Check chunks against the files and commits, by `path`, that they are to be made of.

    Those that are `excused` changed meanwhile, and are reported elsewhere.

    Raises:
        VerificationError: with one entry for each broken rule.
    """
    failures = {
        UNIQUE: _repeated_ids(chunks),
        COVERED: _uncovered(chunks, files, excused),
        SPANS: _bad_spans(chunks),
    }
    broken = {name: text for name, text in failures.items() if text}
    if broken:
        raise VerificationError("chunks", broken)


def _repeated_ids(chunks: pa.Table) -> str:
    counts = pc.value_counts(chunks["chunk_id"])
    repeated = counts.filter(pc.greater(counts.field("counts"), 1))
    return f"{len(repeated)} ids repeated, first {repeated.field('values')[0]}" if len(repeated) else ""


def _uncovered(chunks: pa.Table, files: pa.Table, excused: Collection[str]) -> str:
    covered = pa.concat_arrays([pc.unique(chunks["path"]), pa.array(list(excused), pa.string())])
    missing = files["path"].filter(pc.invert(pc.is_in(files["path"], covered))).to_pylist()
    return f"{len(missing)} files have no chunk: {_some(missing)}" if missing else ""


def _bad_spans(chunks: pa.Table) -> str:
    """Lines and bytes are ordered, and a span in bytes is as long as its text."""
    length = pc.binary_length(chunks["text"].cast(pa.binary()))
    span = pc.subtract(chunks["end_byte"], chunks["start_byte"])
    checks = [
        pc.less(chunks["end_line"], chunks["start_line"]),
        pc.less(chunks["start_line"], 1),
        pc.fill_null(pc.less(chunks["start_byte"], 0), fill_value=False),
        pc.fill_null(pc.not_equal(span, length.cast(pa.int64())), fill_value=False),
        pc.greater_equal(chunks["chunk_index"], chunks["total_chunks"]),
    ]
    bad = np.logical_or.reduce([np.asarray(check) for check in checks])
    paths = chunks["path"].filter(pa.array(bad)).to_pylist()
    return f"{len(paths)} chunks with wrong spans, in {_some(paths)}" if paths else ""


def _some(values: list[str]) -> str:
    shown = ", ".join(repr(value) for value in values[:_SHOWN])
    return shown + (" …" if len(values) > _SHOWN else "")
