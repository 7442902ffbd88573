"""What `make docs` adds to the pages in docs/: those that lie elsewhere, files that pages link to, and the references.

Links are written for a reader of the repository, and lead to the same things on the site.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from posixpath import dirname, normpath, relpath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from docindex_dagster.serving.http.app import build_api
from docindex_dagster.serving.http.reference import as_markdown

ROOT = Path(__file__).parent
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "benchmarks/README.md": "benchmarks.md",
    "benchmarks/jedi_differences.md": "jedi_differences.md",
    "benchmarks/scip_differences.md": "scip_differences.md",
}
"""The pages that lie outside of docs/, and where the site has them."""
REFERENCE = (
    "docindex_dagster.api",
    "docindex_dagster.search.model",
    "docindex_dagster.core.errors",
    "docindex_dagster.pipeline.stage",
    "docindex_dagster.pipeline.source_run",
    "docindex_dagster.embedding.protocol",
    "docindex_dagster.chunking.chunker",
    "docindex_dagster.llm.protocol",
    "docindex_dagster.graph.concepts.extractor",
    "docindex_dagster.search.reranking.protocol",
)
"""The modules whose docstrings are the reference."""
_LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)#\s]+)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what lies outside of docs/."""
    for source, place in PAGES.items():
        files.append(File.generated(config, place, content=_relinked((ROOT / source).read_text("utf-8"), source)))
    for source in sorted(set(_linked_files())):
        files.append(File.generated(config, _place(source), content=(ROOT / source).read_bytes()))
    modules = "\n\n".join(f"::: {module}" for module in REFERENCE)
    files.append(File.generated(config, "reference.md", content=f"# Reference\n\n{modules}\n"))
    files.append(File.generated(config, "api.md", content=as_markdown(build_api().openapi())))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Let the links of a page of docs/ lead to the places on the site."""
    source = f"docs/{page.file.src_uri}"
    return _relinked(markdown, source) if page.file.generated_by is None else markdown


def _linked_files() -> Iterator[str]:
    """What pages link to that is no page, and no file of docs/."""
    for source in (*PAGES, *(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))):
        for link in _LINK.findall((ROOT / source).read_text("utf-8")):
            target = normpath(f"{dirname(source)}/{link}").removeprefix("/")
            if target not in PAGES and not target.startswith("docs/") and (ROOT / target).is_file():
                yield target


def _relinked(markdown: str, source: str) -> str:
    """The text of a page of the repository, with links from its place on the site."""

    def link(found: re.Match[str]) -> str:
        target = normpath(f"{dirname(source)}/{found[1]}").removeprefix("/")
        return relpath(_place(target), dirname(_place(source)) or ".")

    return _LINK.sub(link, markdown)


def _place(path: str) -> str:
    """Where the site has a file of the repository."""
    return PAGES.get(path, path.removeprefix("docs/"))
