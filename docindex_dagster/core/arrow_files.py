"""Arrow IPC files, which readers map into memory. A file holds the values of its rows and no other byte."""

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa


def write(path: Path, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> None:
    """Write batches to a file, as compact copies.

    Arrow pads each buffer to 64 bytes with whatever follows the values in memory. For a slice of a table, that is the
    text of other rows, which may have been erased. Behind a compact copy, Arrow writes zeros.
    """
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema) as out:
        for batch in batches:
            out.write_batch(pa.RecordBatch.from_arrays([_compact(column) for column in batch.columns], schema=schema))


def read(path: Path) -> pa.Table:
    """Map a file into memory.

    Raises OSError or pa.ArrowException where it is missing or damaged.
    """
    with pa.memory_map(str(path)) as file:
        return pa.ipc.open_file(file).read_all()


def _compact(array: pa.Array) -> pa.Array:
    """Return an array whose buffers hold its values alone. Vectors, which are large, are copied only if sliced."""
    return array if array.nbytes == array.get_total_buffer_size() else pa.concat_arrays([array])
