import time

import pyarrow.parquet as pq

from docindex_dagster.sources.discovery import discover
from docindex_dagster.sources.staleness import find_edits


def test_a_new_file_beside_tracked_ones_is_new_also_in_a_folder_called_like_build_output(repository, tmp_path):
    repository.write_all("build/tool.py", "a.py", "dist/left.js")
    repository.git("add", "build/tool.py", "a.py")
    table = tmp_path / "files.parquet"
    pq.write_table(discover(repository.source()), table)

    repository.write_all("build/more.py", "dist/more.js", "out/first.py", "coverage/left.html")
    repository.git("add", "out/first.py")

    edits = find_edits(table, repository.source(), time.monotonic() + 60)
    assert (set(edits.new), edits.changed, edits.gone) == ({"build/more.py", "out/first.py"}, (), ())
