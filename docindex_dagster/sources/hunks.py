"""How many lines each commit changed in its files and in which functions, read off git's patches as they stream by."""

import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from docindex_dagster.core.errors import NoAnswerError, SourceError
from docindex_dagster.sources import git

_SETTINGS = (
    *("-c", f"core.attributesFile={Path(__file__).with_name('functions.gitattributes')}"),
    *("-c", "core.bigFileThreshold=1m"),  # larger files count as binary: git would hold both versions to compare them
)
_PATCHES = (
    *("diff-tree", "--stdin", "--root", "-r", "--patch", "--unified=0", "--find-renames=100%", "--format=/%H"),
    *("--no-ext-diff", "--no-textconv", "--no-color", "--no-relative", "--submodule=short", "--diff-algorithm=myers"),
    "--encoding=UTF-8",  # of the ids, too
    "--ignore-submodules=dirty",  # or a wrong .gitmodules would be an error
)
# Only these lines begin so: those of a file's content have a sign in front.
_LINE = re.compile(
    rb"^(?:/(?P<commit>[0-9a-f]{40,64})$|(?P<file>diff --git )|(?P<binary>Binary files )"
    rb"|@@ -\d+(?:,(?P<deletions>\d+))? \+\d+(?:,(?P<insertions>\d+))? @@ ?(?P<function>.*))",
    re.MULTILINE,
)
_MOST_FUNCTIONS = 8  # of one file
# Commits whose files cannot be read: after so many the repository is taken for one that lacks its old files.
_MOST_FAILURES = 20


@dataclass(slots=True)
class FileHunks:
    """What one patch changes: lines, None where git does not compare them, and the functions around them."""

    insertions: int | None = 0
    deletions: int | None = 0
    functions: list[bytes] = field(default_factory=list)


def read_hunks(root: bytes, commits: Sequence[str]) -> Iterator[tuple[str, list[FileHunks]]]:
    """Yield the patches of each commit, in git's order of files; nothing of one that lacks a file.

    Raises:
        NoAnswerError: git does not answer.
    """
    left, failures = list(commits), 0
    while left and failures < _MOST_FAILURES:
        begun: str | None = None
        patches: list[FileHunks] = []
        try:
            with closing(_lines(root, left)) as lines:
                for line in lines:
                    if line["commit"]:
                        if begun:
                            yield begun, patches
                        begun, patches = line["commit"].decode(), []
                    elif line["file"]:
                        patches.append(FileHunks())
                    else:
                        _add(patches[-1], line)
            if begun:
                yield begun, patches
            left = []
        except NoAnswerError:
            raise
        except SourceError:  # git stops at a file that is missing: go on after that commit
            failures += 1
            left = left[left.index(begun) + 1 if begun in left else 1 :]


def _lines(root: bytes, commits: Sequence[str]) -> Generator[re.Match[bytes], None, None]:
    """Yield the lines that matter. Of a patch, however large, only a block and its last line are held."""
    rest = b""
    with closing(git.stream(root, *_SETTINGS, *_PATCHES, lines=commits)) as blocks:
        for block in blocks:
            whole, newline, rest = (rest + block).rpartition(b"\n")
            yield from _LINE.finditer(whole + newline)
    yield from _LINE.finditer(rest)


def _add(patch: FileHunks, line: re.Match[bytes]) -> None:
    if line["binary"]:
        patch.insertions = patch.deletions = None
    elif patch.insertions is not None and patch.deletions is not None:
        patch.insertions += int(line["insertions"] or 1)
        patch.deletions += int(line["deletions"] or 1)
        function = line["function"].strip()
        if function and function not in patch.functions and len(patch.functions) < _MOST_FUNCTIONS:
            patch.functions.append(function)
