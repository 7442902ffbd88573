"""A source folder with its own Python modules, and scripts run inside it."""

import os
import subprocess
import sys
from pathlib import Path

NAMES = ("struct.py", "numpy.py", "docindex_dagster.py")


def run_in_a_source(script: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run a script in the source folder; any module imported from that folder writes to standard error."""
    source, file = folder / "source", folder / "elsewhere" / "script.py"
    for each in (source, file.parent):
        each.mkdir()
    for name in NAMES:
        (source / name).write_text("import os; os.write(2, b'run')\n")
    file.write_text(script)
    return subprocess.run(
        [sys.executable, file],
        check=False,
        cwd=source,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=60,
    )
