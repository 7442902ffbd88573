"""The rules that every `chunks` table keeps, each also an asset check; and warnings of files cut as text."""

from collections.abc import Collection, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.core.errors import VerificationError
from docindex_dagster.core.safe_text import with_reasons

UNIQUE, COVERED, SPANS = "ids_are_unique", "files_are_covered", "spans_are_in_their_file"
CHUNK_RULES = {
    UNIQUE: "No two chunks have one id.",
    COVERED: "Every commit, and every file that is still to be indexed when it is cut, has a chunk.",
    SPANS: "Lines and bytes of every chunk are in order and fit its text.",
}
_MOST_SHARE = 0.02  # of the files of a source: above it a user should look
_NAMED = 3


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
    shown = ", ".join(repr(value) for value in values[:_NAMED])
    return shown + (" …" if len(values) > _NAMED else "")


def fallbacks(chunks: pa.Table) -> dict[str, str]:
    """The files of a `chunks` table that were cut as text, by path, and why."""
    cut = chunks.select(["path", "fallback"]).filter(pc.is_valid(chunks["fallback"]))
    return dict(zip(cut["path"].to_pylist(), cut["fallback"].to_pylist(), strict=True))


def are_many(cut: int, files: int) -> bool:
    """Whether so many of so many files were cut as text that a user should look."""
    return cut > files * _MOST_SHARE


def phrase(cut: int, files: int) -> str:
    """How many of so many files were cut as text."""
    return f"{cut:,} of {files:,} files {'is' if cut == 1 else 'are'} cut as text"


def sentence(cut: Mapping[str, str], files: int) -> str:
    """How many of so many files were cut as text, of the first ones why, and who names the others."""
    return with_reasons(phrase(len(cut), files), cut.items())


def warning(cut: Mapping[str, str], files: int) -> str:
    """The same where they are many; else nothing."""
    return sentence(cut, files) if are_many(len(cut), files) else ""


def left_out_warning(files: Collection[tuple[str, str]]) -> str:
    """How many files changed between discovery and cutting into what is not indexed, and why; nothing for none."""
    if not files:
        return ""
    count = "1 file is" if len(files) == 1 else f"{len(files):,} files are"
    what = f"{count} left out until the next run, changed as the source was indexed"
    return with_reasons(what, files, are_listed=False)
