"""Which chunks are shown of very many: those of files that people know, the README and the largest ones."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_MOST = 5
_README = r"(?i)^readme(\.\w+)?$"


def well_known(chunks: pa.Table) -> pa.Table:
    """At most five chunks, one a file: the beginning of the README, then the first definition of the largest files.

    Args:
        chunks: with `path` and `qualified_name`, sorted by path and place.
    """
    numbered = chunks.select(["path", "qualified_name"]).append_column("row", pa.array(np.arange(len(chunks))))
    named = numbered.filter(pc.is_valid(numbered["qualified_name"]))
    files = numbered.group_by("path").aggregate([("row", "count"), ("row", "min")])
    first_names = named.group_by("path").aggregate([("row", "min")]).rename_columns(["path", "named"])
    files = files.join(first_names, "path")
    files = (
        files.append_column("is_readme", pc.match_substring_regex(files["path"], _README))
        .append_column("shown", pc.coalesce(files["named"], files["row_min"]))
        .sort_by([("is_readme", "descending"), ("row_count", "descending"), ("path", "ascending")])
    )
    return chunks.take(files["shown"].slice(0, _MOST))
