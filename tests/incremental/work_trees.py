"""A git repository and a plain folder that change like working trees: by editors, by tools and by git."""

import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

LONG_AGO_NS = 1_600_000_000_000_000_000
_SECOND_NS = 1_000_000_000
_CONFIGURATION = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false")


@dataclass(slots=True)
class WorkTree:
    """A folder of files.

    Its clock starts far in the past, so that timestamps count as settled unless they are fresh.
    """

    root: Path
    clock: int = 0
    written: int = 0
    _temporary: int = field(default=0, repr=False)

    def tick(self) -> int:
        self.clock += 1
        return self.clock

    def place(self, path: str) -> Path | None:
        """Return a writable path, or None if a symlink or a special file is in the way."""
        place = self.root / path
        for folder in reversed(place.relative_to(self.root).parents[:-1]):
            above = self.root / folder
            if above.is_symlink() or (above.exists() and not above.is_dir()):
                return None
        place.parent.mkdir(parents=True, exist_ok=True)
        return place

    def write(self, path: str, data: bytes, *, is_fresh: bool = False) -> None:
        """Write a file with its own timestamp, replacing anything at the path."""
        place = self.place(path)
        if place is None:
            return
        if place.is_symlink() or place.is_dir() or (place.exists() and not place.is_file()):
            self.remove(path)
        place.write_bytes(data)
        if not is_fresh:
            self.settle(place)

    def settle(self, place: Path) -> None:
        stamp = LONG_AGO_NS + self.tick() * _SECOND_NS
        os.utime(place, ns=(stamp, stamp))

    def remove(self, path: str) -> None:
        place = self.root / path
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        elif os.path.lexists(place):
            place.unlink()

    def files(self) -> list[str]:
        """Return the regular files, sorted, without git's own."""
        found = (path for path in self.root.rglob("*") if path.is_file() and not path.is_symlink())
        return sorted(str(name) for path in found if ".git" not in (name := path.relative_to(self.root)).parts)

    def replace_keeping_size_and_time(self, path: str, data: bytes) -> None:
        """Replace a file with another of the same size and timestamp, as `rsync -t` does."""
        place = self.root / path
        before = place.stat()
        temporary = place.with_name(f"{place.name}.new")
        temporary.write_bytes(data)
        os.utime(temporary, ns=(before.st_atime_ns, before.st_mtime_ns))
        temporary.replace(place)


@dataclass(slots=True)
class Repository(WorkTree):
    """A git repository whose commits use dates of its clock, so that runs are reproducible to the byte."""

    @classmethod
    def create(cls, root: Path) -> "Repository":
        root.mkdir(parents=True)
        repository = cls(root)
        repository.git("init", "--quiet", "--initial-branch=main")
        return repository

    def git(self, *arguments: str, days_back: int = 0) -> str | None:
        """Return the output of a git command, or None if git refuses it."""
        date = f"{LONG_AGO_NS // _SECOND_NS + self.tick() - days_back * 86_400} +0000"
        environment = os.environ | {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date, "GIT_EDITOR": "true"}
        command = ["git", "-C", str(self.root), *_CONFIGURATION, *arguments]
        done = subprocess.run(
            command, env=environment, check=False, capture_output=True, text=True, errors="surrogateescape"
        )
        return done.stdout if done.returncode == 0 else None

    def commit(self, *arguments: str, days_back: int = 0) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message=change", *arguments, days_back=days_back)

    def clean_files(self) -> list[str]:
        """Return files that match the git index, so that git must detect a replacement."""
        tracked = set((self.git("ls-files", "-z") or "").split("\0"))
        modified = set((self.git("ls-files", "-z", "--modified") or "").split("\0"))
        return [path for path in self.files() if path in tracked - modified]
