"""To which file of the source `source` and `.` of a shell lead."""

import posixpath
import re
from collections.abc import Iterator
from dataclasses import replace
from fnmatch import fnmatchcase

from docindex_dagster.callgraph.modules import Modules, Search, upwards

_COMPUTED = re.compile(r"\$\((?:[^()]|\([^()]*\))*\)|\$\{[^{}]*\}|\$\w+|`[^`]*`|[\"']")
_WRITTEN = Search(("{}", "{}.sh", "{}.bash"))
_BEHIND = replace(_WRITTEN, anywhere=("",))  # what stands behind a folder that is computed


def find(modules: Modules, importer: str, module: str) -> Iterator[str]:
    """The file of a path, of which the folder may be computed; all that a pattern names."""
    before = None
    while before != module:
        before, module = module, _COMPUTED.sub("\0", module)
    computed, _, written = module.rpartition("\0")
    path = written.lstrip("/")
    if not path or (computed and not written.startswith("/")) or path.startswith("~"):
        return
    if "*" in path and (several := _matching(modules, importer, path)):
        yield from several
    else:
        yield from (_BEHIND if computed else _WRITTEN).find(modules, importer, path)


def _matching(modules: Modules, importer: str, pattern: str) -> list[str]:
    """The files that a pattern names, in the nearest folder around the importer in which any are."""
    for folder in upwards(posixpath.dirname(importer)):
        path = posixpath.normpath(posixpath.join(folder, pattern))
        beside = (known for known in modules.paths if posixpath.dirname(known) == posixpath.dirname(path) != "")
        if found := sorted(known for known in beside if fnmatchcase(known, path)):
            return found
        pattern = re.sub(r"^(?:\.\.?/)+", "", pattern)
    return []
