"""The supported Python interpreters on this machine."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

VERSIONS = ("3.11", "3.12", "3.13")


def python(version: str) -> Path | None:
    """Return a working interpreter of a version from PATH, pyenv or uv, or None."""
    return next((file for file in _places(version) if _is_of(file, version)), None)


def _places(version: str) -> Iterator[Path]:
    name = f"python{version}"
    yield from (Path(folder, name) for folder in os.environ.get("PATH", "").split(os.pathsep))
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from sorted(pyenv.glob(f"versions/{version}.*/bin/{name}"))
    yield from sorted(Path.home().glob(f".local/share/uv/python/cpython-{version}*/bin/{name}"))


def _is_of(file: Path, version: str) -> bool:
    """Return whether an interpreter starts with the given version: pyenv's shims on PATH may be dangling."""
    if not os.access(file, os.X_OK):
        return False
    printed = subprocess.run([file, "--version"], capture_output=True, text=True, check=False)
    return printed.returncode == 0 and printed.stdout.startswith(f"Python {version}.")
