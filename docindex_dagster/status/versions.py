"""The versions of docindex, of what it stands on, and of what it stores."""

import platform
from importlib.metadata import PackageNotFoundError, distribution, version
from typing import Any

from docindex_dagster.core.installation import DISTRIBUTION, is_clone

_PACKAGES = (
    *("dagster", "dagster-webserver", "lancedb", "tantivy", "pyarrow", "numpy", "pydantic", "mcp", "typer"),
    *("rich", "sqlalchemy", "tree-sitter", "tree-sitter-language-pack", "kingfisher-secret-scanner"),
)
# Of extras: named where they are there.
_FURTHER = ("dagster-postgres", "obstore", "opentelemetry-sdk", "sentence-transformers", "spacy", "torch")


def versions(docindex: str) -> dict[str, Any]:
    """The version of docindex, which is given, and of all that decides how it behaves."""
    return {
        "docindex": docindex,
        "installed": _installed(),
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "platform": platform.platform(),
        "packages": {name: found for name in (*_PACKAGES, *_FURTHER) if (found := _version(name)) or name in _PACKAGES},
        "schemas": schemas(),
        "model": _model(),
    }


def schemas() -> dict[str, str]:
    """The versions of what is stored: where one differs, an index is made anew, or the part of it that it decides."""
    from docindex_dagster.callgraph.table import REFERENCES_VERSION
    from docindex_dagster.chunking.versions import EXTRACTOR_VERSION
    from docindex_dagster.core.tokenizer import TOKENS_VERSION
    from docindex_dagster.graph.version import GRAPH_VERSION
    from docindex_dagster.stores.schema_version import SCHEMA_VERSION

    return {
        "stores": SCHEMA_VERSION,
        "chunks": EXTRACTOR_VERSION,
        "references": REFERENCES_VERSION,
        "graph": GRAPH_VERSION,
        "tokens": TOKENS_VERSION,
    }


def _model() -> dict[str, str]:
    """The static model, which lies in the package."""
    from docindex_dagster.embedding.weights import NAME, SHA256

    return {"name": NAME, "sha256": SHA256}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _installed() -> str:
    """How it was installed, and by what."""
    if is_clone():
        return "from a clone"
    return f"from a wheel by {(distribution(DISTRIBUTION).read_text('INSTALLER') or 'an unknown installer').strip()}"
