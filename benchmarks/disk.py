"""Measure the disk use of an index after many small updates.

    python -m benchmarks.disk REPOSITORY [--updates 200]

A clone of the repository is indexed, then updated repeatedly; each update edits one file and indexes. The benchmark
prints the size of each part of the index after the first build, after the updates, after a cleanup, and for a fresh
build of the same files. `kept` holds files that only the previous generation needs.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from docindex_dagster.core.files import folder_bytes
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import Settings
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.runner.run import index
from docindex_dagster.sources.model import Source
from docindex_dagster.stores.generation import read_generation

LIMIT = 1.5  # multiple of a fresh build, without kept files
_PARTS = ("tables", "stores/lance", "stores/tantivy", "stores/graph", "stores/packs")
_MIB = 1 << 20


def sizes(layout: Layout) -> dict[str, int]:
    """Return the bytes of each part of an index, and of files that only the previous generation needs.

    A file that two generations share by a hard link is counted once.
    """
    found = {part: _bytes(_files(layout.home / part)) for part in _PARTS}
    found["kept"] = _kept(layout)
    return found


def _kept(layout: Layout) -> int:
    """Return Tantivy segments and graph files of the previous generation that the published one does not share."""
    now, before = read_generation(layout), read_generation(layout, previous=True)
    if now is None or before is None:
        return 0
    used = {_identity(file) for file in _of(layout, now.tantivy, now.loose_graph_files())}
    return _bytes(
        file for file in _of(layout, before.tantivy, before.loose_graph_files()) if _identity(file) not in used
    )


def _of(layout: Layout, tantivy: str, graph: set[str]) -> list[Path]:
    return [*_files(layout.tantivy / tantivy), *(layout.graph / name for name in graph)]


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def _identity(file: Path) -> tuple[int, int]:
    found = file.stat()
    return found.st_dev, found.st_ino


def _bytes(files: Iterable[Path]) -> int:
    return sum({_identity(file): file.stat().st_size for file in files}.values())


def edit(root: Path, files: list[Path], chance: random.Random, number: int) -> None:
    """Edit one file, and commit every tenth edit."""
    file = chance.choice(files)
    lines = file.read_text(encoding="utf-8").splitlines()
    lines.insert(chance.randrange(len(lines) + 1), f"# update {number}")
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    if number % 10 == 0:
        identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(["git", "-C", root, *identity, "commit", "--quiet", "--all", "-m", "update"], check=True)


def clean_up(settings: Settings, root: Path) -> bool:
    """Run the cleanup command; return False if this version of docindex has none."""
    (settings.root / "docindex.toml").write_text(
        f'[[source]]\nkind = "git"\nname = "{root.name}"\npath = "{root.name}"\n'
    )
    command = [sys.executable, "-m", "docindex_dagster.cli", "prune"]
    return subprocess.run(command, cwd=settings.root, check=False, capture_output=True).returncode == 0


def show(name: str, found: dict[str, int]) -> int:
    """Print a row; return the bytes without files kept for a rollback."""
    total = sum(found[part] for part in _PARTS) - found["kept"]
    cells = (*(found[part] for part in _PARTS), found["kept"], total)
    print(f"{name:<24}" + "".join(f"{value / _MIB:>16.2f}" for value in cells), flush=True)
    return total


def main() -> None:
    """Print the sizes in MiB, and exit with 1 if the cleanup leaves more than the limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repository", type=Path)
    parser.add_argument("--updates", type=int, default=200)
    arguments = parser.parse_args()
    chance = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "repository"
        subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", arguments.repository, root], check=True)
        source = Source("git/repository", "git", "repository", root)
        settings = Settings(root=Path(folder), home=Path(folder) / ".docindex")
        layout = Layout(settings.home)
        index(settings, source, StaticEmbedder())
        print(f"{'MiB':<24}" + "".join(f"{name:>16}" for name in (*_PARTS, "kept", "total - kept")))
        show("first build", sizes(layout))
        files = [path for path in _files(root) if path.suffix in {".py", ".md", ".rst"} and path.stat().st_size > 200]
        started = time.monotonic()
        for number in range(1, arguments.updates + 1):
            edit(root, files, chance, number)
            index(settings, source, StaticEmbedder())
        seconds = (time.monotonic() - started) / arguments.updates
        left = show(f"after {arguments.updates} updates", sizes(layout))
        if clean_up(settings, root):
            left = show("after docindex prune", sizes(layout))
        anew = Layout(Path(folder) / "anew")
        index(settings.model_copy(update={"home": anew.home}), source, StaticEmbedder())
        fresh = show("fresh build", sizes(anew))
        print(f"{left / fresh:.2f} times a fresh build (limit {LIMIT}); {seconds:.2f} s per update")
        print(f"whole homes: {folder_bytes(layout.home) / _MIB:.2f} and {folder_bytes(anew.home) / _MIB:.2f} MiB")
    sys.exit(left > LIMIT * fresh)


if __name__ == "__main__":
    main()
