"""Small repositories with real files, taken from this project, and seeded edits to them.

Each repository has three files that name its revision, updated in one commit. A reader that sees two revisions, or only
two of the three files, sees a partial publication.
"""

import os
import random
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.scale.processes import CHECKOUT
from tests.sources.remotes import serving

STAMP = "stamp"
STAMPED = ("stamp/one.md", "stamp/two.rst", "stamp/three.py")
_TEXTS = (
    "# Stamp\n\nThe stamp of {name} is revision{number}.\n",
    "Stamp\n=====\n\nThe stamp of {name} is revision{number}.\n",
    'def stamp() -> str:\n    """The stamp of {name} is revision{number}."""\n    return "revision{number}"\n',
)
_REVISION = re.compile(r"revision(\d+)")
_MATERIAL = ("docindex_dagster/**/*.py", "docs/*.md", "tests/fixtures/code/**/*.*")
_LARGEST_BYTES = 12_000
_FILES = 5
_GIT = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    **{
        f"GIT_{who}_{what}": value
        for who in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "Ada"), ("EMAIL", "a@b.c"))
    },
}


@dataclass(slots=True)
class Repository:
    """A repository, and the revision in its newest commit."""

    name: str
    folder: Path
    url: str
    revision: int = 0

    @property
    def key(self) -> str:
        return f"git/{self.name}"

    @property
    def declaration(self) -> str:
        """Return its table for `docindex.toml`."""
        return f'[[source]]\nkind = "git"\nname = "{self.name}"\nurl = "{self.url}"\n'

    def commit(self, chance: random.Random) -> None:
        """Commit the next revision, and cut, move or lengthen one of the other files."""
        self.revision += 1
        for path, text in zip(STAMPED, _TEXTS, strict=True):
            (self.folder / path).parent.mkdir(exist_ok=True)
            (self.folder / path).write_text(text.format(name=self.name, number=self.revision))
        others = [path for path in sorted(self.folder.iterdir()) if path.is_file()]
        if self.revision > 1 and others:
            _edit(chance.choice(others), chance, self.revision)
        _git(self.folder, "add", "--all")
        _git(self.folder, "commit", "--quiet", "--message", f"Revision {self.revision} of {self.name}")


@dataclass(slots=True)
class Repositories:
    """All repositories, served by git's own HTTP server on the loopback device."""

    all: list[Repository]
    chance: random.Random

    def edit(self, count: int) -> list[Repository]:
        """Commit to randomly chosen repositories and return them."""
        chosen = self.chance.sample(self.all, min(count, len(self.all)))
        for repository in chosen:
            repository.commit(self.chance)
        return chosen


@contextmanager
def repositories(folder: Path, count: int, seed: int) -> Iterator[Repositories]:
    """Create `count` repositories in a folder and serve them."""
    chance = random.Random(seed)
    material = [path for glob in _MATERIAL for path in sorted(CHECKOUT.glob(glob)) if _is_small(path)]
    with serving(folder) as server:
        made = [_made(folder, f"r{number:03}", server.url, material, chance) for number in range(count)]
        yield Repositories(made, chance)


def project(declared: Sequence[Repository]) -> str:
    """Return a `docindex.toml` that declares repositories, with a parse timeout that suits a busy machine."""
    return "\n".join(["[chunking]\nparse_timeout_s = 300\n", *(one.declaration for one in declared)])


def revisions(texts: Sequence[str]) -> set[int]:
    """Return the revisions named in these texts."""
    return {int(number) for text in texts for number in _REVISION.findall(text)}


def _made(folder: Path, name: str, url: str, material: Sequence[Path], chance: random.Random) -> Repository:
    work_tree = folder / name
    work_tree.mkdir(parents=True)
    for path in chance.sample(material, _FILES):
        shutil.copyfile(path, work_tree / path.name)
    _git(work_tree, "init", "--quiet", "--initial-branch=main")
    _git(work_tree, "config", "uploadpack.allowFilter", "true")
    _git(work_tree, "config", "uploadpack.allowAnySHA1InWant", "true")
    made = Repository(name, work_tree, f"{url}/{name}/.git")
    made.commit(chance)
    return made


def _is_small(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts and 0 < path.stat().st_size <= _LARGEST_BYTES


def _edit(path: Path, chance: random.Random, revision: int) -> None:
    """Move a file, cut lines from it, or lengthen it, so that it stays roughly valid in its language."""
    lines = path.read_bytes().splitlines(keepends=True)
    match chance.randrange(3):
        case 0 if len(lines) > 20:
            at = chance.randrange(len(lines) // 2)
            path.write_bytes(b"".join(lines[:at] + lines[at + len(lines) // 4 :]))
        case 1:
            path.rename(path.with_name(f"moved_{revision}_{path.name}"))
        case _:
            path.write_bytes(b"".join(lines) + b"\n" + lines[chance.randrange(len(lines))] * 2)


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, env=dict(os.environ) | _GIT, check=True, capture_output=True)
