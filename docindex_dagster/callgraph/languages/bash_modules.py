"""To which file of the source `source` and `.` of a shell lead."""

import posixpath
import re
from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase

from docindex_dagster.callgraph.modules import Modules

_COMPUTED = re.compile(r"\$\((?:[^()]|\([^()]*\))*\)|\$\{[^{}]*\}|\$\w+|`[^`]*`|[\"']")
_ENDINGS = ("", ".sh", ".bash")


def find(modules: Modules, importer: str, module: str) -> Iterator[str]:
    """The file of a path, of which the folder may be computed: beside the importer, above it, else the nearest."""
    before = None
    while before != module:
        before, module = module, _COMPUTED.sub("\0", module)
    computed, _, written = module.rpartition("\0")
    tail = written.lstrip("/")
    if not tail or (computed and not written.startswith("/")) or tail.startswith("~"):
        return
    folder = posixpath.dirname(importer)
    names = [posixpath.normpath(posixpath.join(folder, tail))]
    inner = re.sub(r"^(?:\.\.?/)+", "", tail)
    while folder:
        folder = posixpath.dirname(folder)
        names.append(posixpath.normpath(posixpath.join(folder, inner)))
    for name in names:
        if "*" in inner and (several := _matching(modules.paths, name)):
            yield from several
            return
        for ending in _ENDINGS:
            if f"{name}{ending}" in modules.paths:
                yield f"{name}{ending}"
                return
    found = [path for path in modules.paths if path.endswith(f"/{inner}")] if computed else []
    if found:
        yield min(found, key=lambda path: (-_shared(importer, path), path.count("/"), path))


def _matching(paths: Collection[str], pattern: str) -> list[str]:
    """The files in a folder that a pattern names."""
    folder = posixpath.dirname(pattern)
    return sorted(path for path in paths if folder and posixpath.dirname(path) == folder and fnmatchcase(path, pattern))


def _shared(first: str, second: str) -> int:
    return len(posixpath.commonprefix([first.split("/")[:-1], second.split("/")[:-1]]))
