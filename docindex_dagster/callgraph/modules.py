"""The files of a source, by the names under which others import them."""

import posixpath
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property


@dataclass(frozen=True, eq=False)
class Modules:
    """The files of a source by the names under which others import them."""

    paths: frozenset[str]
    folders: frozenset[str]
    dotted: Mapping[str, Sequence[str]]  # Python: files by the last parts of their dotted names
    aliases: Sequence[tuple[str, str, str]]  # ECMAScript: in a folder, a pattern and what it stands for
    packages: Mapping[str, str]  # ECMAScript: names of packages of the source, and their folders
    headers: Mapping[str, Sequence[str]]  # C: files that may be included, by their names
    go: Sequence[tuple[str, str]] = ()  # names of the modules of Go, and their folders
    crates: Mapping[str, str] = field(default_factory=dict)  # libraries of Rust, and their first files

    @cached_property
    def folders_named(self) -> Mapping[str, Sequence[str]]:
        """The folders by their last names."""
        found: dict[str, list[str]] = defaultdict(list)
        for folder in sorted(self.folders):
            found[posixpath.basename(folder)].append(folder)
        return found
