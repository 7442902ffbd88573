from pathlib import Path

from docindex_dagster.runner.watching.folders import folders_of
from tests.sources.conftest import new_repository


def test_folders_that_hold_tracked_files_are_watched_also_if_they_are_called_like_build_output(tmp_path):
    tree = new_repository(tmp_path / "repository")
    tree.write_all("src/a.py", "build/tool.py", "pkg/env/deep/b.py")
    tree.commit()
    tree.write_all("dist/out.js", "node_modules/x.js")

    watched = folders_of(tree.source(), tmp_path / "home")

    below = {str(Path(folder).relative_to(tree.root)) for folder in watched if "/.git" not in folder}
    assert below == {".", "src", "build", "pkg", "pkg/env", "pkg/env/deep"}
