"""Code files of real repositories, as discovery would index them, for parsing benchmarks."""

import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from docindex_dagster.code.languages import grammar_for
from docindex_dagster.sources.discovery import discover
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.text import read_document

_CODE = frozenset({"code", "test"})


@dataclass(frozen=True, slots=True)
class CodeFile:
    """A code file in a language with a grammar."""

    root: Path
    path: str
    language: str

    def text(self) -> str:
        """Return the indexed text."""
        return read_document(self.root, self.path)[0].text


def code_files(folder: Path, exclude: Sequence[str] = ()) -> Iterator[CodeFile]:
    """Return the code files of a git work tree or folder, without vendored, generated or minified files."""
    kind: Literal["git", "library"] = "git" if (folder / ".git").exists() else "library"
    table = discover(Source(f"{kind}/{folder.name}", kind, folder.name, folder, exclude=tuple(exclude)))
    for row in table.select(["path", "language", "source_type", "skipped_reason"]).to_pylist():
        if row["skipped_reason"] is None and row["source_type"] in _CODE and grammar_for(row["language"] or ""):
            yield CodeFile(folder, row["path"], row["language"])


def revision(folder: Path) -> str:
    """Return the short commit hash of a git work tree, or a dash for a folder."""
    if not (folder / ".git").exists():
        return "–"  # noqa: RUF001 as in the tables of README.md
    command = ["git", "-C", str(folder), "rev-parse", "--short=8", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
