"""The files of a repository that are indexed and asked for, in the folder that they are checked out into."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from docindex_dagster.sources.classify import classify_name
from docindex_dagster.sources.discovery import discover
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.text import read_document
from training.labels.questions import content_words, normalised

# What repeats the subjects of commits, and what no question is about.
_LEFT_OUT = re.compile(
    r"(?:^|/)change-?_?logs?(?:-[\d.]+)?$|(?:^|/)(?:change-?_?logs?|changes|history|news|release-?_?notes?|releases?|whats-?_?new|announcements?|upgrading|licen[sc]e\w*|"
    r"copying|authors|contributors|maintainers|third.?party|vendor(?:ed)?|node_modules|locales?|_posts|site-news|code_of_conduct)"
    r"(?:(?:[-_.][\w.-]*)?\.(?:md|markdown|rst|txt|adoc|html|mdx)$|/|$)",
    re.IGNORECASE,
)
# What says how a project is built: every other change touches it.
_BUILD_FILE = re.compile(
    r"(?:^|/)(?:mix\.exs|config/\w+\.exs|setup\.py|[\w.-]+\.gemspec|Rakefile|Gemfile|[\w.-]+\.gradle(?:\.kts)?|[\w.-]+\.sbt|Package\.swift|"
    r"CMakeLists\.txt|[\w.-]+\.cmake|conanfile\.py|configure(?:\.ac)?|GNUmakefile|Makefile(?:\.\w+)?|build\.zig|[\w.-]+\.podspec|"
    r"[\w.-]+\.cabal|[\w.-]+\.rockspec|[\w.-]+\.csproj|pom\.xml|noxfile\.py|conf\.py|[.]?github/.*)$",
    re.IGNORECASE,
)


def is_in(path: str, folders: tuple[str, ...]) -> bool:
    """Whether a path is in one of some folders, or one of some files; `.` is all."""
    return any(name in {".", path} or path.startswith(f"{name}/") for name in folders)


def is_left_out(path: str) -> bool:
    """Whether a path is of a changelog or the like."""
    return _LEFT_OUT.search(path) is not None


@dataclass(frozen=True)
class File:
    """A text file as discovery sees it."""

    path: str
    source_type: str
    language: str | None
    loader: str


@dataclass(frozen=True)
class Checkout:
    """A folder with the files of one revision, in UTF-8."""

    folder: Path
    files: Mapping[str, File]
    _texts: dict[str, str] = field(default_factory=dict)
    _words: dict[str, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: Path) -> "Checkout":
        """Look at what lies in a folder; what the index skips is not there."""
        rows = discover(Source("library/x", "library", "x", folder)).to_pylist()
        found = (
            File(row["path"], row["source_type"], row["language"], row["loader"])
            for row in rows
            if not row["skipped_reason"] and row["loader"] != "pdf"
        )
        return cls(folder, {file.path: file for file in found})

    def text(self, path: str) -> str:
        """The text of a file."""
        if path not in self._texts:
            self._texts[path] = read_document(self.folder, path)[0].text
        return self._texts[path]

    def replace(self, path: str, text: str) -> None:
        """Write another text in the place of a file's."""
        (self.folder / path).write_bytes(text.encode())
        self._texts[path] = text
        self._words.pop(path, None)

    def words(self, path: str) -> frozenset[str]:
        """The words with content in a file and its path."""
        if path not in self._words:
            self._words[path] = content_words(path) | content_words(self.text(path))
        return self._words[path]

    def is_content(self, path: str) -> bool:
        """Whether a path, of this revision or an earlier one, is of code or a document that says something."""
        kind = classify_name(os.fsencode(path))
        return (
            kind is not None
            and kind.source_type != "config"
            and not _LEFT_OUT.search(path)
            and not _BUILD_FILE.search(path)
        )

    def is_test(self, path: str) -> bool:
        """Whether a file of this revision is a test."""
        return self.files[path].source_type == "test"

    def normalised_texts(self) -> Mapping[str, str]:
        """The texts of all files as words between spaces."""
        return {path: normalised(self.text(path)) for path in self.files}
