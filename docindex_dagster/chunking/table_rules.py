"""The rules for every `chunks` table, each of which is also an asset check; and warnings about text fallbacks."""

from collections.abc import Collection, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.core.errors import VerificationError
from docindex_dagster.core.safe_text import with_reasons

UNIQUE, COVERED, SPANS = "ids_are_unique", "files_are_covered", "spans_are_in_their_file"
CHUNK_RULES = {
    UNIQUE: "No two chunks have the same id.",
    COVERED: "Every commit has a chunk, and so does every file that should still be indexed when it is chunked.",
    SPANS: "Lines and bytes of every chunk are in order and match its text.",
}
_MAX_SHARE = 0.02  # of a source's files; a larger share deserves attention
_MAX_NAMED = 3


def verify_chunks(chunks: pa.Table, files: pa.Table, excused: Collection[str] = ()) -> None:
    """Check chunks against the files and commits that they were built from, by `path`.

    Paths in `excused` changed in the meantime and are reported elsewhere.

    Raises:
        VerificationError: Has one entry for each broken rule.
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
    """Check that lines and bytes are ordered and that a byte span is as long as its text."""
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
    shown = ", ".join(repr(value) for value in values[:_MAX_NAMED])
    return shown + (" …" if len(values) > _MAX_NAMED else "")


def fallbacks(chunks: pa.Table) -> dict[str, str]:
    """Return the files of a `chunks` table that were cut as text, by path, with the reasons."""
    cut = chunks.select(["path", "fallback"]).filter(pc.is_valid(chunks["fallback"]))
    return dict(zip(cut["path"].to_pylist(), cut["fallback"].to_pylist(), strict=True))


def is_above_threshold(cut: int, files: int) -> bool:
    """Return whether the share of files cut as text is large enough to warn about."""
    return cut > files * _MAX_SHARE


def phrase(cut: int, files: int) -> str:
    """Say how many files were cut as text."""
    return f"{cut:,} of {files:,} files {'is' if cut == 1 else 'are'} cut as text"


def sentence(cut: Mapping[str, str], files: int) -> str:
    """Say how many files were cut as text, with the reasons for the first ones and a pointer to the others."""
    return with_reasons(phrase(len(cut), files), cut.items())


def warning(cut: Mapping[str, str], files: int) -> str:
    """Return `sentence` if many files were cut as text, otherwise ""."""
    return sentence(cut, files) if is_above_threshold(len(cut), files) else ""


def left_out_warning(files: Collection[tuple[str, str]]) -> str:
    """Say how many files became ineligible between discovery and chunking, and why; "" for none."""
    if not files:
        return ""
    count = "1 file is" if len(files) == 1 else f"{len(files):,} files are"
    message = f"{count} skipped until the next run because of changes during indexing"
    return with_reasons(message, files, are_listed=False)
