"""Index real repositories with the command line.

    python -m benchmarks.repositories FOLDER...

For each git work tree or folder, the output has files, chunks, seconds and chunks per second of a new process with a
recorded Dagster run, then the seconds of another run without changes, and the peak memory of all processes together
(proportional set size, Linux only). Then every code file is compared with its concatenated chunks, and every chunk with
its lines and bytes.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.core import tables
from docindex_dagster.core.layout import Layout
from docindex_dagster.sources.text import read_document

_SAMPLE_S = 0.25


@dataclass(frozen=True, slots=True)
class Measured:
    """A run of the command."""

    summary: dict[str, Any]
    seconds: float
    peak_mib: float


def run(folder: Path, project: Path) -> Measured:
    """Run `docindex index FOLDER` in a project folder."""
    command = [sys.executable, "-m", "docindex_dagster.cli", "index", str(folder), "--json"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("DAGSTER", "DOCINDEX"))}
    started = time.monotonic()
    process = subprocess.Popen(command, cwd=project, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    peak = [0.0]
    watcher = threading.Thread(target=_watch, args=(process, peak))
    watcher.start()
    output = process.communicate()[0]
    seconds = time.monotonic() - started
    watcher.join()
    if process.returncode:
        raise SystemExit(f"{folder.name}: docindex index ended with {process.returncode}: {output.decode()}")
    return Measured(json.loads(output)[0], seconds, peak[0])


def _watch(process: "subprocess.Popen[bytes]", peak: list[float]) -> None:
    while process.poll() is None:
        peak[0] = max(peak[0], sum(proportional_kib(pid) for pid in tree(process.pid)) / 1024)
        time.sleep(_SAMPLE_S)


def tree(pid: int) -> list[int]:
    """Yield a process and its descendants."""
    found = [pid]
    for parent in found:
        try:
            for task in Path(f"/proc/{parent}/task").iterdir():
                found += [int(child) for child in (task / "children").read_text().split()]
        except OSError:
            continue
    return found


def proportional_kib(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def check_chunks(folder: Path, chunks: pa.Table) -> tuple[int, int, list[str]]:
    """Compare code files with their chunks; return the numbers of files and chunks, and the differences."""
    code = chunks.filter(pc.and_(pc.is_valid(chunks["start_byte"]), pc.not_equal(chunks["source_type"], "doc")))
    by_path: dict[str, list[dict[str, Any]]] = {}
    for row in code.select(["path", "text", "start_byte", "end_byte", "start_line", "end_line"]).to_pylist():
        by_path.setdefault(row["path"], []).append(row)
    wrong = []
    for path, rows in by_path.items():
        data = read_document(folder, path)[0].text.encode()
        position = 0
        for row in rows:
            start, end = row["start_byte"], row["end_byte"]
            lines = data.count(b"\n", 0, start) + 1, data.count(b"\n", 0, end - 1) + 1
            fits = start == position and data[start:end] == row["text"].encode()
            if not fits or lines != (row["start_line"], row["end_line"]):
                wrong.append(f"{path}:{row['start_line']}")
            position = end
        if position != len(data):
            wrong.append(f"{path}: ends at {position} of {len(data)}")
    return len(by_path), code.num_rows, wrong


def main() -> None:
    """Print a row for each repository."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+")
    failed = False
    columns = ("files", 7), ("chunks", 8), ("seconds", 9), ("chunks/s", 10), ("again s", 9), ("MiB", 7)
    print(f"{'repository':<16}" + "".join(f"{name:>{width}}" for name, width in columns) + "  code files compared")
    for folder in [path.absolute() for path in parser.parse_args().folders]:
        with tempfile.TemporaryDirectory() as project:
            first = run(folder, Path(project))
            again = run(folder, Path(project))
            chunks = tables.read(Layout(Path(project) / ".docindex").table("chunks", first.summary["source"]))
        if chunks is None:
            raise SystemExit(f"{folder.name}: no chunks")
        files, compared, wrong = check_chunks(folder, chunks)
        failed |= bool(wrong)
        verdict = f"{len(wrong)} wrong, first {wrong[0]}" if wrong else f"{files} files, {compared} chunks, all equal"
        count = first.summary["chunks"]
        print(
            f"{folder.name:<16}{first.summary['files']:>7}{count:>8}{first.seconds:>9.1f}{count / first.seconds:>10.0f}"
            f"{again.seconds:>9.1f}{first.peak_mib:>7.0f}  {verdict}",
            flush=True,
        )
    sys.exit(failed)


if __name__ == "__main__":
    main()
