"""Measure a fresh installation: time, size, and time until the first answer.

    make dist
    python -m benchmarks.installation dist/*.whl REPOSITORY [QUERY]

Each installer installs the wheel and its dependencies from the package index into an empty environment, with an empty
home and cache. Then a project is created for a copy of the repository, indexed and searched. Times are wall-clock
seconds and include the network.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

_INSTALLERS = ("uv", "pip")
_MB = 1_000_000


def main(wheel: Path, repository: Path, query: str = "how are errors handled") -> None:
    """Print a row for each installer: environment, installation, size, three commands, and the total."""
    print("| | environment | install | MB on disk | init | index | search | total |")
    print("|---|---|---|---|---|---|---|---|")
    for name in _INSTALLERS:
        with tempfile.TemporaryDirectory() as folder:
            _measure(name, wheel.absolute(), repository, query, Path(folder))


def _measure(name: str, wheel: Path, repository: Path, query: str, folder: Path) -> None:
    env, project = folder / "env", folder / "project"
    shutil.copytree(repository, project, symlinks=True, ignore=shutil.ignore_patterns(".docindex", "docindex.toml"))
    home = folder / "home"
    home.mkdir()
    python, docindex = str(env / "bin" / "python"), str(env / "bin" / "docindex")
    made, installed = {
        "uv": (["uv", "venv", "--python", sys.executable, str(env)], ["uv", "pip", "install", "--python", python]),
        "pip": ([sys.executable, "-m", "venv", str(env)], [python, "-m", "pip", "install", "--no-cache-dir"]),
    }[name]
    commands = [made, [*installed, str(wheel)], *([docindex, *words] for words in (["init", "--yes"], ["index"]))]
    times = [_seconds(command, project, home) for command in commands]
    size = _bytes(env)  # with the bytecode of the modules that these commands import
    times.append(_seconds([docindex, "search", query], project, home))
    made_s, installed_s, *rest = (f"{seconds:.1f}" for seconds in times)
    print(
        f"| {name} | {made_s} | {installed_s} | {size / _MB:,.0f} | {' | '.join(rest)} | {sum(times):.1f} |", flush=True
    )


def _seconds(command: list[str], folder: Path, home: Path) -> float:
    """Return how long a command takes for a new user.

    Raises:
        SystemExit: if the command fails.
    """
    begun = time.perf_counter()
    ended = subprocess.run(command, cwd=folder, env=_environment(home), capture_output=True, text=True, check=False)
    if ended.returncode:
        raise SystemExit(f"{' '.join(command)}: {ended.stderr or ended.stdout}")
    return time.perf_counter() - begun


def _environment(home: Path) -> dict[str, str]:
    others = {name: value for name, value in os.environ.items() if not name.startswith(("DOCINDEX_", "DAGSTER_"))}
    caches = {"XDG_CACHE_HOME": str(home / "cache"), "UV_CACHE_DIR": str(home / "uv"), "UV_PYTHON_DOWNLOADS": "never"}
    return {**others, **caches, "HOME": str(home), "DOCINDEX_CEILING_DIRECTORIES": str(home.parent)}


def _bytes(folder: Path) -> int:
    """Return the size of the files in a folder, with hard links counted once."""
    taken = {(one.st_dev, one.st_ino): one.st_blocks * 512 for one in _files(folder)}
    return sum(taken.values())


def _files(folder: Path) -> Iterator[os.stat_result]:
    return (path.lstat() for path in folder.rglob("*") if not path.is_symlink())


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:4])
