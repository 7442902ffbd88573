"""Measure the check that reports changed sources with an answer.

    python -m benchmarks.staleness [--files 10000]

Generated Python files are indexed as a library and as a git work tree, then checked for edits. The first check reads
the table of files, as in a new process; the next check reuses it. Both run before and after a file is edited, added and
removed. The fingerprint tells exactly whether there is anything to index, and is measured for comparison. The output is
in wall-clock milliseconds, the minimum of seven.
"""

import argparse
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import load_settings
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.runner.run import index
from docindex_dagster.sources import registry, staleness
from docindex_dagster.sources.changes import fingerprint
from docindex_dagster.sources.model import Source

_TIMES = 7
_LONGEST_S = 10.0
_FOLDERS = 400
_OLD_ENOUGH_S = 2.5  # folders newer than the coarsest time stamp are listed


def main() -> None:
    """Print a row for each kind of source and state."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=10_000)
    count = parser.parse_args().files
    print(f"{count:,} files    first check  next   fingerprint")
    for kind in ("library", "git"):
        with tempfile.TemporaryDirectory() as folder:
            table, source = _indexed(Path(folder), kind, count)
            time.sleep(_OLD_ENOUGH_S)
            print(f"{kind:8} unchanged {_measured(table, source)}")
            (source.path / "f1" / "new.py").write_text("NEW = 1\n")
            (source.path / "f2" / "module2.py").write_text("EDITED = 1\n")
            (source.path / "f3" / "module3.py").unlink()
            print(f"{kind:8} edited    {_measured(table, source)}")


def _indexed(root: Path, kind: str, count: int) -> tuple[Path, Source]:
    for number in range(count):
        file = root / "code" / f"f{number % _FOLDERS}" / f"module{number}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"def work_{number}():\n    return {number}\n")
    if kind == "git":
        identity = ("-c", "user.name=benchmark", "-c", "user.email=benchmark@example.org")
        for arguments in (("init", "-q"), ("add", "-A"), (*identity, "commit", "-qm", "all")):
            subprocess.run(["git", *arguments], cwd=root / "code", check=True)
    (root / "docindex.toml").write_text(f'[[source]]\nkind = "{kind}"\npath = "code"\n')
    settings = load_settings(root)
    (source,) = registry.sources(settings).values()
    index(settings, source, StaticEmbedder())
    return Layout(settings.home).table("discovered_files", source.key), source


def _measured(table: Path, source: Source) -> str:
    def first() -> None:
        staleness.load_listed_files.cache_clear()
        again()

    def again() -> None:
        staleness.find_edits(table, source, time.monotonic() + _LONGEST_S)

    return "   ".join(f"{_best_ms(call):8.1f}" for call in (first, again, lambda: fingerprint(source)))


def _best_ms(call: Callable[[], object]) -> float:
    took = []
    for _ in range(_TIMES):
        started = time.perf_counter()
        call()
        took.append(time.perf_counter() - started)
    return 1000 * min(took)


if __name__ == "__main__":
    main()
