"""Small repositories with real files, cut out of this project's own, and what is edited in them.

Each has three files that say one revision, in one commit. Whoever finds two revisions of a repository at once, or two
of the three files, sees half a publication.
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
    """A repository, and the revision that its newest commit says."""

    name: str
    folder: Path
    url: str
    revision: int = 0

    @property
    def key(self) -> str:
        return f"git/{self.name}"

    @property
    def declaration(self) -> str:
        """Its table in `docindex.toml`."""
        return f'[[source]]\nkind = "git"\nname = "{self.name}"\nurl = "{self.url}"\n'

    def commit(self, chance: random.Random) -> None:
        """Say the next revision, and add to, or take away from, one of the other files."""
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
    """All of them, served by git's own HTTP server on loopback."""

    all: list[Repository]
    chance: random.Random

    def edit(self, count: int) -> list[Repository]:
        """Commit to some of them, chosen at random."""
        chosen = self.chance.sample(self.all, min(count, len(self.all)))
        for repository in chosen:
            repository.commit(self.chance)
        return chosen


@contextmanager
def repositories(folder: Path, count: int, seed: int) -> Iterator[Repositories]:
    """Make so many repositories in a folder, and serve them."""
    chance = random.Random(seed)
    material = [path for glob in _MATERIAL for path in sorted(CHECKOUT.glob(glob)) if _is_small(path)]
    with serving(folder) as server:
        made = [_made(folder, f"r{number:03}", server.url, material, chance) for number in range(count)]
        yield Repositories(made, chance)


def project(declared: Sequence[Repository]) -> str:
    """The `docindex.toml` that declares some; a file has time to be parsed on a machine that is busy with all hosts."""
    return "\n".join(["[chunking]\nparse_timeout_s = 300\n", *(one.declaration for one in declared)])


def revisions(texts: Sequence[str]) -> set[int]:
    """The revisions that some texts say."""
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
    """Move, cut or lengthen a file, so that it stays one of its language, more or less."""
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
