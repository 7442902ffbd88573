"""Measure which parts of real repositories are treated as secrets, and the cost of detection.

    python -m benchmarks.secrets REPOSITORY... [--show]

Each work tree is discovered from nothing, with and without secret detection, in seconds of CPU time. `--show` prints
each finding with its line for judgment: it is true if it has the form of a key or password, including examples and test
keys, and false otherwise.
"""

import argparse
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa

from docindex_dagster.sources.discovery import discover
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.secrets import find_secrets
from docindex_dagster.sources.text import read_document

Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("repositories", type=Path, nargs="+")
    parser.add_argument("--show", action="store_true")
    asked = parser.parse_args()
    started = time.process_time()
    find_secrets("-----BEGIN")
    print(f"loading the detector: {time.process_time() - started:.2f} s\n")
    print("| repository | files | MB | skipped by name | by content | files masked | secrets | without, s | with, s |")
    print("|---|---|---|---|---|---|---|---|---|")
    for path in asked.repositories:
        measure(path.resolve(), show=asked.show)


def measure(path: Path, *, show: bool) -> None:
    source = Source(key=f"git/{path.name}", kind="git", name=path.name, path=path)
    plain, without = timed(Source(key=source.key, kind="git", name=source.name, path=path, secrets="index"))
    table, with_secrets = timed(source)
    rows = table.to_pylist()
    named = [row for row in rows if (row["skipped_reason"] or "").startswith("secret") and row["content_hash"] is None]
    read = [row for row in rows if (row["skipped_reason"] or "").startswith("secret") and row["content_hash"]]
    masked = [row for row in rows if row["masked"]]
    indexed = [row for row in plain.to_pylist() if row["skipped_reason"] is None]
    figures = [
        *(len(indexed), round(sum(row["size"] for row in indexed) / 1e6, 1), len(named), len(read), len(masked)),
        *(sum(len(row["masked"]) for row in masked), f"{without:.2f}", f"{with_secrets:.2f}"),
    ]
    print(f"| {path.name} | " + " | ".join(map(str, figures)) + " |")
    if show:
        report(path, named, read, masked)


def timed(source: Source) -> tuple[pa.Table, float]:
    started = time.process_time()
    table = discover(source)
    return table, time.process_time() - started


def report(path: Path, named: list[Row], read: list[Row], masked: list[Row]) -> None:
    for row in (*named, *read):
        print(f"    {row['path']}: {row['skipped_reason']}")
    for row in masked:
        lines = read_document(path, row["path"])[0].text.split("\n")
        for secret in row["masked"]:
            print(f"    {row['path']}:{secret['start_line']} {secret['rule']}: {lines[secret['start_line'] - 1][:160]}")
    print("   ", Counter(secret["rule"] for row in masked for secret in row["masked"]))


if __name__ == "__main__":
    main()
