"""A project with a git repository and a library of several hundred chunks, edited as a team would."""

import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import Settings, load_settings
from docindex_dagster.sources import registry
from docindex_dagster.sources.model import Source
from tests.incremental.work_trees import Repository, WorkTree

# The timeout keeps a busy machine from chunking a file as text in one run and by its structure in another.
CONFIG = """
[chunking]
parse_timeout_s = 600

[[source]]
kind = "git"
name = "code"
path = "code"

[[source]]
kind = "library"
name = "notes"
path = "notes"
"""
CLONE = """
[[source]]
kind = "git"
name = "clone"
url = "{url}"
"""
TOPICS = ("pump", "valve", "tank", "meter", "filter", "relay", "motor", "sensor")


@dataclass(slots=True)
class Project:
    """A folder with a `docindex.toml`, and edits determined by a seed."""

    root: Path
    code: Repository
    notes: WorkTree
    chance: random.Random
    revision: int = 0
    written: list[str] = field(default_factory=list)

    @classmethod
    def create(cls, root: Path, number: int, files: int = 60, *, with_clone: bool = False) -> "Project":
        """Create a project; `with_clone` adds its repository as a second source, by URL."""
        root.mkdir(parents=True, exist_ok=True)
        clone = CLONE.format(url=(root / "code").as_uri()) if with_clone else ""
        (root / "docindex.toml").write_text(CONFIG + clone)
        (root / "notes").mkdir()
        project = cls(root, Repository.create(root / "code"), WorkTree(root / "notes"), random.Random(number))
        for at in range(files):
            project.code.write(f"part{at % 5}/module{at}.py", project.module(at))
            project.notes.write(f"chapter{at % 5}/page{at}.md", project.page(at))
        project.code.commit()
        return project

    @property
    def layout(self) -> Layout:
        return Layout(self.root / ".docindex")

    @property
    def settings(self) -> Settings:
        return load_settings(self.root)

    @property
    def sources(self) -> list[Source]:
        return list(registry.sources(self.settings).values())

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """Return an environment for processes that use this project."""
        kept = {name: value for name, value in inherited.items() if not name.startswith(("DAGSTER", "DOCINDEX"))}
        return kept | {"DOCINDEX_ROOT": str(self.root), "DOCINDEX_TRUST": "1"}

    def edit(self, share: float = 0.2, *, spared: Collection[str] = ()) -> None:
        """Change, add, delete and commit files, so that every stage has work; leave `spared` files alone."""
        self.revision += 1
        for tree, make in ((self.code, self.module), (self.notes, self.page)):
            files = [path for path in tree.files() if path not in spared]
            for path in self.chance.sample(files, max(1, int(len(files) * share))):
                tree.write(path, make(self.chance.randrange(1000)))
            tree.remove(self.chance.choice(files))
            ending = "py" if tree is self.code else "md"
            tree.write(f"new/file{self.revision}.{ending}", make(self.revision))
        if self.revision % 3:
            self.code.commit()

    def module(self, number: int) -> bytes:
        names = self.chance.sample(TOPICS, 4)
        functions = "\n\n".join(
            f"def {name}_{number}(litres: int) -> int:\n"
            f'    """Move the {name} of revision {self.revision}."""\n' + f"    {name} = litres + {number}\n" * 25
            for name in names
        )
        return f"import {names[0]}\n\n\n{functions}\n".encode()

    def page(self, number: int) -> bytes:
        names = self.chance.sample(TOPICS, 4)
        sections = "\n\n".join(
            f"## The {name}\n\n" + f"How to open the {name} {number} in revision {self.revision}. " * 30
            for name in names
        )
        return f"# Page {number}\n\n{sections}\n".encode()
