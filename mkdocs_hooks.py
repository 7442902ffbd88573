"""Hooks of `make docs`: add pages and files from outside `docs/` to the site.

Links are written for readers of the repository. The hooks rewrite them so that they work on the site, too.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from posixpath import dirname, normpath, relpath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "benchmarks/README.md": "benchmarks.md",
    "benchmarks/tables.md": "benchmark_tables.md",
    "benchmarks/jedi_differences.md": "jedi_differences.md",
    "benchmarks/scip_differences.md": "scip_differences.md",
}
"""Pages outside `docs/`, with their paths on the site."""
_LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)#\s]+)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add pages and linked files from outside `docs/`."""
    for source, place in PAGES.items():
        files.append(File.generated(config, place, content=_relinked((ROOT / source).read_text("utf-8"), source)))
    for source in sorted(set(_linked_files())):
        files.append(File.generated(config, _place(source), content=(ROOT / source).read_bytes()))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Rewrite the links of a page of `docs/` to paths on the site."""
    source = f"docs/{page.file.src_uri}"
    return _relinked(markdown, source) if page.file.generated_by is None else markdown


def _linked_files() -> Iterator[str]:
    """Yield files outside `docs/` that pages link to and that are not pages."""
    for source in (*PAGES, *(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))):
        for link in _LINK.findall((ROOT / source).read_text("utf-8")):
            target = normpath(f"{dirname(source)}/{link}").removeprefix("/")
            if target not in PAGES and not target.startswith("docs/") and (ROOT / target).is_file():
                yield target


def _relinked(markdown: str, source: str) -> str:
    """Return the text of a page with its links rewritten to paths on the site."""

    def link(found: re.Match[str]) -> str:
        target = normpath(f"{dirname(source)}/{found[1]}").removeprefix("/")
        return relpath(_place(target), dirname(_place(source)) or ".")

    return _LINK.sub(link, markdown)


def _place(path: str) -> str:
    """Return the path of a repository file on the site."""
    return PAGES.get(path, path.removeprefix("docs/"))
