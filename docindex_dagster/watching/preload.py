"""Loading what a run needs before the first one: a parsing worker, the model, LanceDB and Tantivy take two seconds."""

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from docindex_dagster.core.errors import DocindexError
from docindex_dagster.core.settings import Settings
from docindex_dagster.embedding.providers import load_embedder
from docindex_dagster.runner.run import index
from docindex_dagster.sources.model import Source

_PAGES = {"page.md": "# Page\n\nA page.\n", "code.py": 'def page() -> str:\n    """A page."""\n    return ""\n'}


def preload(settings: Settings) -> None:
    """Index two pages, and again after an edit, into a folder that is thrown away: that loads all there is to load."""
    with TemporaryDirectory(prefix="docindex-") as folder, suppress(DocindexError, OSError):
        pages = Path(folder, "pages")
        pages.mkdir()
        for edit in ("", "\nEdited.\n"):
            for name, text in _PAGES.items():
                (pages / name).write_text(text + (edit if name.endswith(".md") else ""), encoding="utf-8")
            source = Source(key="library/pages", kind="library", name="pages", path=pages)
            elsewhere = settings.model_copy(update={"home": Path(folder, "home")})
            index(elsewhere, source, load_embedder(settings.embedding))
