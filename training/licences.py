"""Check the licences of the training corpus against its table, and print the table as Markdown.

The files at the top level of a repository contain its licences. Each licence is recognised by sentences unique to it.
"""

import argparse
import csv
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from os.path import normpath
from pathlib import Path

ALLOWED = frozenset(
    {
        "0BSD",
        "Apache-2.0",
        "Apache-2.0 WITH LLVM-exception",
        "Apache-2.0 WITH Swift-exception",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "BSL-1.0",
        "CC0-1.0",
        "ISC",
        "MIT",
        "MIT-0",
        "PSF-2.0",
        "PostgreSQL",
        "Unlicense",
        "Zlib",
    }
)

_LICENCE_FILE = re.compile(r"(?:\w+-)?(?:licen[sc]es?|copying|unlicen[sc]e)(?:[-_.].*)?", re.IGNORECASE)
_POINTER = 80  # words; shorter files are not licences, but refer to one
_NOT_WORDS = re.compile(r"[^a-z0-9.+]+")
_MIT = "permission is hereby granted free of charge to any person obtaining a copy of this"
_MIT_NOTICE = "or substantial portions of the"
_BSD = "redistribution and use in source and binary forms with or without modification are permitted"
_BSD_NAMES = "used to endorse or promote products derived from this"
_ISC = "permission to use copy modify and or distribute this software for any purpose with or without fee"
_HPND = "permission to use copy modify and distribute this software and its documentation"
_ISC_NOTICE = "provided that the above copyright notice and this permission notice appear in all copies"


@dataclass(frozen=True, slots=True)
class Sign:
    """Phrases that identify a licence: its text contains all of `needs` and none of `lacks`."""

    licence: str
    needs: tuple[str, ...]
    lacks: tuple[str, ...] = ()

    def is_in(self, text: str) -> bool:
        """Return whether the normalised text matches."""
        return all(phrase in text for phrase in self.needs) and not any(phrase in text for phrase in self.lacks)


@dataclass(frozen=True, slots=True)
class Entry:
    """A row of the corpus table."""

    repository: str
    revision: str
    licence: str


_LLVM = "llvm exceptions to the apache 2.0 license"
_SWIFT = "runtime library exception to the apache 2.0 license"
_SIGNS = (
    Sign("MIT", (_MIT, _MIT_NOTICE)),
    Sign("MIT-0", (_MIT, "to deal in the software without restriction"), (_MIT_NOTICE,)),
    Sign("Apache-2.0", ("apache license version 2.0 january 2004", "terms and conditions"), (_LLVM, _SWIFT)),
    Sign("Apache-2.0", ("licensed under the apache license version 2.0",), (_LLVM, _SWIFT)),
    Sign("Apache-2.0 WITH LLVM-exception", (_LLVM,)),
    Sign("Apache-2.0 WITH Swift-exception", (_SWIFT,)),
    Sign("BSD-4-Clause", (_BSD, "all advertising materials mentioning features or use of this software")),
    Sign("BSD-3-Clause", (_BSD, _BSD_NAMES)),
    Sign("BSD-2-Clause", (_BSD,), (_BSD_NAMES,)),
    Sign("ISC", (_ISC, _ISC_NOTICE)),
    Sign("ISC", (_ISC.replace("and or", "and"), _ISC_NOTICE)),
    Sign("0BSD", (_ISC, "the software is provided as is"), (_ISC_NOTICE,)),
    Sign("BSL-1.0", ("boost software license version 1.0",)),
    Sign("Unlicense", ("this is free and unencumbered software released into the public domain",)),
    Sign("CC0-1.0", ("cc0 1.0 universal",)),
    Sign("Zlib", ("the origin of this software must not be misrepresented", "altered source versions must be")),
    Sign("PSF-2.0", ("python software foundation license version 2",)),
    Sign("PostgreSQL", (_HPND, "for any purpose without fee and without a written agreement is hereby granted")),
    # Licences that are not allowed, to report them by name.
    Sign("GPL", ("gnu general public license",)),
    Sign("LGPL", ("gnu lesser general public license",)),
    Sign("LGPL", ("gnu library general public license",)),
    Sign("AGPL", ("gnu affero general public license",)),
    Sign("GFDL", ("gnu free documentation license",)),
    Sign("MPL", ("mozilla public license",)),
    Sign("EPL", ("eclipse public license",)),
    Sign("CDDL", ("common development and distribution license",)),
    Sign("EUPL", ("european union public licence",)),
    Sign("MS-PL", ("microsoft public license",)),
    Sign("MS-RL", ("microsoft reciprocal license",)),
    Sign("CC-BY", ("creativecommons.org licenses by",)),
    Sign("CC-BY", ("creative commons attribution",)),
    Sign("SSPL", ("server side public license",)),
    Sign("BUSL", ("business source license",)),
    Sign("Elastic", ("elastic license",)),
    Sign("Commons-Clause", ("commons clause",)),
    Sign("FSL", ("functional source license",)),
    Sign("HPND", (_HPND, "for any purpose and without fee is hereby granted")),
    Sign("JSON", ("shall be used for good not evil",)),
    Sign("NCSA", (_MIT, "to deal with the software without restriction")),
    Sign("PolyForm", ("polyform",)),
    Sign("Sustainable-Use", ("sustainable use license",)),
    Sign("WTFPL", ("do what the fuck you want",)),
    Sign("OFL", ("sil open font license",)),
)


def normalise(text: str) -> str:
    """Return the words of a text in lower case, separated by single spaces, without punctuation."""
    return _NOT_WORDS.sub(" ", text.lower())


def recognise(text: str) -> frozenset[str]:
    """Return the licences whose characteristic sentences occur in a text."""
    words = normalise(text)
    return frozenset(sign.licence for sign in _SIGNS if sign.is_in(words))


def named_by(expression: str) -> frozenset[str]:
    """Return the licences that an SPDX expression of `AND` and `OR` names."""
    return frozenset(name.strip("() ") for name in re.split(r"\b(?:AND|OR)\b", expression))


def problems_of(entry: Entry, mirrors: Path, never: Iterable[str]) -> list[str]:
    """Return the problems of a row; none if its licence files match the table and are allowed."""
    found = _of_never_list(entry.repository, never)
    named = named_by(entry.licence)
    found += [f"{licence} is not an allowed licence" for licence in sorted(named - ALLOWED)]
    try:
        texts = _licence_texts(mirrors / entry.repository.replace("/", "+") / "repo", entry.revision)
    except subprocess.CalledProcessError as error:
        return [*found, f"git cannot read the repository: {error.stderr.decode(errors='replace').strip()}"]
    if not texts:
        return [*found, "no licence file at the top level"]
    recognised: set[str] = set()
    for name, text in texts.items():
        licences = recognise(text)
        recognised |= licences
        if not licences and (len(text.split()) > _POINTER or len(texts) == 1):
            found.append(f"{name}: no known licence recognised")
        found += [f"{name}: {licence} is not an allowed licence" for licence in sorted(licences - ALLOWED)]
        found += [f"{name}: {licence} is not in the table" for licence in sorted((licences & ALLOWED) - named)]
    return found + [f"{licence} is in the table but not in any licence file" for licence in sorted(named - recognised)]


def _of_never_list(repository: str, never: Iterable[str]) -> list[str]:
    name = repository.lower()
    bare = name.rpartition("/")[2]
    return [
        f"on the list of repositories never to train on: {listed}"
        for listed in never
        if listed.lower() == name or listed.lower().rpartition("/")[2] == bare
    ]


def _licence_texts(mirror: Path, revision: str) -> dict[str, str]:
    """Return the texts of the licence files at the top level of a revision, or else in its folder of licences."""
    files = {name: kind for name, kind in _entries(mirror, revision).items() if _LICENCE_FILE.fullmatch(name)}
    if "blob" not in files.values():
        files = {
            f"{folder}/{name}": kind
            for folder in files
            for name, kind in _entries(mirror, f"{revision}:{folder}").items()
        }
    return {name: _text(mirror, revision, name) for name, kind in files.items() if kind == "blob"}


def _entries(mirror: Path, tree: str) -> dict[str, str]:
    """Return the kind of each entry of a tree by its name: blob, tree or commit."""
    lines = git(mirror, "ls-tree", "-z", tree).decode().split("\0")
    return {name: stat.split()[1] for stat, _, name in (line.partition("\t") for line in lines if line)}


def _text(mirror: Path, revision: str, name: str) -> str:
    """Return the text of a file, following a symbolic link once."""
    mode = git(mirror, "ls-tree", revision, name).split()[0]
    text = git(mirror, "show", f"{revision}:{name}").decode(errors="replace")
    if mode != b"120000":
        return text
    return git(mirror, "show", f"{revision}:{normpath(Path(name).parent / text)}").decode(errors="replace")


def git(mirror: Path, *arguments: str) -> bytes:
    """Run git in a repository, and return what it prints.

    Raises:
        CalledProcessError: git failed; `stderr` says why.
    """
    return subprocess.run(["git", "-C", str(mirror), *arguments], check=True, capture_output=True).stdout


def read_corpus(path: Path) -> list[Entry]:
    """Read the table of the corpus."""
    with path.open(encoding="utf-8", newline="") as file:
        return [Entry(row["repository"], row["revision"], row["licence"]) for row in csv.DictReader(file)]


def out_of_order(entries: Sequence[Entry]) -> list[str]:
    """Return the problems with duplicate or unsorted rows."""
    names = [entry.repository.lower() for entry in entries]
    doubled = [f"{name}: twice in the table" for name, rows in groupby(sorted(names)) if len(list(rows)) > 1]
    return doubled if names == sorted(names) else [*doubled, "the table is not sorted by repository"]


def as_markdown(entries: Sequence[Entry]) -> str:
    """Return the table and the counts per licence as Markdown."""
    counts = Counter(entry.licence for entry in entries)
    by_count = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    rows = [
        "| repository | revision | licence |",
        "|---|---|---|",
        *(f"| {entry.repository} | {entry.revision[:8]} | {entry.licence} |" for entry in entries),
        "",
        "| licence | repositories |",
        "|---|---:|",
        *(f"| {licence} | {count} |" for licence, count in by_count),
        f"| all | {len(entries)} |",
    ]
    return "\n".join(rows)


def main() -> int:
    """Check the corpus and print its table, or print the problems to standard error."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("corpus", type=Path, help="CSV with the columns repository, revision and licence")
    parser.add_argument("mirrors", type=Path, help="folder with a bare repository OWNER+NAME/repo for each row")
    parser.add_argument("never", type=Path, help="repositories never to train on, one OWNER/NAME per line")
    arguments = parser.parse_args()
    entries = read_corpus(arguments.corpus)
    never = [line.strip() for line in arguments.never.read_text(encoding="utf-8").splitlines() if line.strip()]
    problems = out_of_order(entries) + [
        f"{entry.repository}: {problem}"
        for entry in entries
        for problem in problems_of(entry, arguments.mirrors, never)
    ]
    if problems:
        sys.stderr.write("\n".join(problems) + "\n")
        return 1
    sys.stdout.write(as_markdown(entries) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
