"""The report of `docindex support`, and the versions in it. If a part fails, the report has the reason in its place."""

import os
import platform
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, distribution, version
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from docindex_dagster.core.installation import DISTRIBUTION, is_clone
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.platforms import processors
from docindex_dagster.core.settings import Settings
from docindex_dagster.status.redaction import (
    changed_settings,
    declared_sources,
    is_public,
    redact_message,
    set_variables,
    without_secrets,
)
from docindex_dagster.status.source_status import RunsOf, SourceState

_Part = TypeVar("_Part")
_MAX_LISTED = 10  # failures and findings
_MB = 1e6
# The subfolders of the home that docindex creates; everything else is counted together.
_PARTS = (
    *(
        "tables",
        "stores",
        "vectors",
        "arrived",
        "summaries",
        "repositories",
        "checkouts",
        "memory",
        "dagster",
        "journal",
    ),
    *("locks", "maintenance", "withdrawn"),
)
_FIGURES = (
    "files",
    "chunks",
    "commits",
    "text_bytes",
    "nodes",
    "edges",
    "fallbacks",
    "graph_failures",
    "unreadable_configurations",
)
_PACKAGES = (
    *("dagster", "dagster-webserver", "lancedb", "tantivy", "pyarrow", "numpy", "pydantic", "mcp", "typer"),
    *("rich", "sqlalchemy", "tree-sitter", "tree-sitter-language-pack", "kingfisher-secret-scanner"),
)
# Packages of extras; listed if installed.
_OPTIONAL_PACKAGES = ("dagster-postgres", "obstore", "opentelemetry-sdk", "sentence-transformers", "spacy", "torch")


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """Options of a report."""

    version: str  # of docindex
    has_paths: bool  # include the names and paths of sources
    is_verified: bool  # include the findings of `docindex doctor`, which reads all stores


def report(load: Callable[[], Settings], runs_of: RunsOf, wanted: ReportOptions) -> dict[str, Any]:
    """Return all parts of a report.

    Args:
        load: loads the settings of the project.
        runs_of: returns the outcomes of runs.
        wanted: the options.
    """
    parts: dict[str, Any] = {
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": _attempt(lambda: versions(wanted.version)),
        "system": _attempt(_system),
        "variables": set_variables(os.environ),
    }
    settings = _attempt(load)
    if not isinstance(settings, Settings):
        return {**parts, "project": settings}
    layout = Layout(settings.home)
    states = _attempt(lambda: _states(settings, runs_of))
    parts |= {
        "project": _attempt(lambda: _project(settings)),
        "index": _attempt(lambda: _index(layout)),
        "sizes": _attempt(lambda: _sizes(settings.home)),
        "disk": _attempt(lambda: _disk(settings.home)),
        "sources": _summary(states) if isinstance(states, list) else states,
    }
    if wanted.is_verified:
        parts["doctor"] = _attempt(lambda: _doctor(layout))
    if wanted.has_paths:
        parts["paths"] = _attempt(lambda: _paths(settings, states if isinstance(states, list) else []))
    return parts


def _attempt(make: Callable[[], _Part]) -> _Part | dict[str, str]:
    """Return a part, or why it failed, since reports are made when something is broken."""
    try:
        return make()
    except Exception as error:  # noqa: BLE001 any error belongs in the report
        return {"problem": f"{type(error).__name__}: {redact_message(str(error))}"}


def _system() -> dict[str, Any]:
    libc = " ".join(platform.libc_ver())
    return {
        "system": platform.system(),
        "release": platform.release(),
        "machine": platform.machine(),
        "libc": libc.strip() or None,
        "processors": processors(),
        "encoding": f"{sys.getfilesystemencoding()}, {sys.stdout.encoding}",
        "git": _git_version(),
    }


def _git_version() -> str | None:
    try:
        ended = subprocess.run(["git", "version"], capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    numbers = [word for word in ended.stdout.split() if word[:1].isdigit()]
    return numbers[0] if numbers else None


def _project(settings: Settings) -> dict[str, Any]:
    default_home = settings.root / ".docindex"
    return {
        "has_file": settings.config_file.is_file(),
        "home": "next to docindex.toml" if default_home in {settings.home, settings.home.parent} else "elsewhere",
        "declared": declared_sources(settings),
        "settings": changed_settings(settings),
    }


def _index(layout: Layout) -> dict[str, Any]:
    from docindex_dagster.embedding.static import NAME
    from docindex_dagster.stores.generation import read_generation, read_next

    generation, candidate = read_generation(layout), read_next(layout)
    if generation is None:
        return {"generation": None}
    entries = generation.sources.values()
    languages: Counter[str] = Counter()
    for entry in entries:
        languages.update({_name(name): number for name, number in entry.languages.items()})
    return {
        "generation": generation.number,
        "model": NAME if generation.model == NAME else _name(generation.model),
        "is_schema_current": generation.schema_version == _schemas()["stores"],
        "goes_over_to_another": candidate is not None,
        "sources": len(generation.sources),
        **{name: sum(getattr(entry, name) for entry in entries) for name in _FIGURES},
        "chunks_by_language": dict(languages.most_common(_MAX_LISTED)),
    }


def _name(name: str) -> str:
    """Return the name of a model or language, unless a user may have made it up."""
    return name if is_public(name) or redact_message(name) == name else "other"


def _sizes(home: Path) -> dict[str, Any]:
    """Return the size and number of files of each part of the home."""
    found: dict[str, list[int]] = {}
    for entry in os.scandir(home) if home.is_dir() else ():
        part = entry.name if entry.name in _PARTS else "other"
        sizes = found.setdefault(part, [0, 0])
        for size in _files_of(entry):
            sizes[0] += size
            sizes[1] += 1
    return {part: {"MB": round(size / _MB, 1), "files": files} for part, (size, files) in sorted(found.items())}


def _files_of(entry: os.DirEntry[str]) -> Iterator[int]:
    if not entry.is_dir(follow_symlinks=False):
        yield entry.stat(follow_symlinks=False).st_size
        return
    for folder, _, names in os.walk(entry.path):
        yield from (os.lstat(Path(folder, name)).st_size for name in names)


def _disk(home: Path) -> dict[str, Any]:
    there = next(place for place in (home, *home.parents) if place.is_dir())
    usage = shutil.disk_usage(there)
    return {"total_MB": round(usage.total / _MB), "free_MB": round(usage.free / _MB)}


def _states(settings: Settings, runs_of: RunsOf) -> list[SourceState]:
    from docindex_dagster.status import catalog, source_status

    return source_status.states_of_all(settings, catalog.entries_of(settings), runs_of(settings))


def _summary(states: Iterable[SourceState]) -> dict[str, Any]:
    """Return the number of sources by state and by outcome of the last run, and the redacted failures."""
    found = list(states)
    failures = [one.runs.failure for one in found if one.runs.failure is not None]
    return {
        "states": dict(Counter(str(one.state) for one in found)),
        "last_runs": dict(Counter(one.runs.outcome or "none" for one in found)),
        "failures": [redact_message(failure) for failure in failures[:_MAX_LISTED]],
    }


def _doctor(layout: Layout) -> dict[str, Any]:
    from docindex_dagster.stores.doctor import examine

    if not layout.current.exists():
        return {"findings": 0, "note": "nothing is published"}
    findings = list(examine(layout))
    return {
        "findings": len(findings),
        "first": [f"{finding.store}: {redact_message(finding.problem)}" for finding in islice(findings, _MAX_LISTED)],
    }


def _paths(settings: Settings, states: Iterable[SourceState]) -> dict[str, Any]:
    """Return names and paths, without the secrets found in them."""
    return {
        "root": without_secrets(str(settings.root)),
        "home": without_secrets(str(settings.home)),
        "declared": [without_secrets(source.path or source.url or "") for source in settings.source],
        "sources": {without_secrets(one.source): str(one.state) for one in states},
        "failures": {
            without_secrets(one.source): without_secrets(one.runs.failure) for one in states if one.runs.failure
        },
    }


def versions(docindex: str) -> dict[str, Any]:
    """Return the version of docindex, which is given, and of everything that affects its behavior."""
    return {
        "docindex": docindex,
        "installed": _installed(),
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "platform": platform.platform(),
        "packages": {
            name: found for name in (*_PACKAGES, *_OPTIONAL_PACKAGES) if (found := _version(name)) or name in _PACKAGES
        },
        "schemas": _schemas(),
        "model": _model(),
    }


def _schemas() -> dict[str, str]:
    """Return the versions of the stored formats. If one differs, the affected part of an index is rebuilt."""
    from docindex_dagster.callgraph.table import REFERENCES_VERSION
    from docindex_dagster.chunking.inputs import EXTRACTOR_VERSION
    from docindex_dagster.core.tokenizer import TOKENS_VERSION
    from docindex_dagster.graph.source_graph import GRAPH_VERSION
    from docindex_dagster.stores.generation import SCHEMA_VERSION

    return {
        "stores": SCHEMA_VERSION,
        "chunks": EXTRACTOR_VERSION,
        "references": REFERENCES_VERSION,
        "graph": GRAPH_VERSION,
        "tokens": TOKENS_VERSION,
    }


def _model() -> dict[str, str]:
    """Return the static model, which is part of the package."""
    from docindex_dagster.embedding.static import NAME, SHA256

    return {"name": NAME, "sha256": SHA256}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _installed() -> str:
    """Return how docindex was installed, and with which installer."""
    if is_clone():
        return "from a clone"
    return f"from a wheel with {(distribution(DISTRIBUTION).read_text('INSTALLER') or 'an unknown installer').strip()}"
