"""The Pythons of this machine that the package is for."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

VERSIONS = ("3.11", "3.12", "3.13")


def python(version: str) -> Path | None:
    """An interpreter of a version, on PATH, of pyenv or of uv; None where there is none that starts."""
    return next((file for file in _places(version) if _is_of(file, version)), None)


def _places(version: str) -> Iterator[Path]:
    name = f"python{version}"
    yield from (Path(folder, name) for folder in os.environ.get("PATH", "").split(os.pathsep))
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from sorted(pyenv.glob(f"versions/{version}.*/bin/{name}"))
    yield from sorted(Path.home().glob(f".local/share/uv/python/cpython-{version}*/bin/{name}"))


def _is_of(file: Path, version: str) -> bool:
    """Whether it starts, and is what it is called: pyenv's stand-ins on PATH may lead nowhere."""
    if not os.access(file, os.X_OK):
        return False
    printed = subprocess.run([file, "--version"], capture_output=True, text=True, check=False)
    return printed.returncode == 0 and printed.stdout.startswith(f"Python {version}.")
