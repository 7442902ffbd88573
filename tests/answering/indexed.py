"""A small project, indexed as users do."""

import os
import subprocess
import sys
from pathlib import Path

GUIDE = "# Guide\n\n## Pumps\n\nThe pump moves water from the well to the tank. Prime it before the first use.\n"
CODE = 'def prime_pump(litres: int) -> None:\n    """Fill the pump with water."""\n    print(litres)\n'


def write_project(root: Path, files: dict[str, str] | None = None) -> Path:
    """A project with a library `manual` of these files, and its index."""
    for name, text in (files or {"guide.md": GUIDE, "pump.py": CODE}).items():
        file = root / "manual" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    outside = {name: value for name, value in os.environ.items() if not name.startswith("DOCINDEX_")}
    command = [sys.executable, "-m", "docindex_dagster.cli", "index", "manual"]
    subprocess.run(command, cwd=root, env=outside, check=True, capture_output=True)
    return root
