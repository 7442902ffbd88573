"""To which file of the source an `@import` of Zig leads."""

import posixpath
from collections.abc import Iterator

from docindex_dagster.callgraph.modules import Modules

_OUTSIDE = frozenset({"std", "builtin"})


def find(modules: Modules, importer: str, module: str) -> Iterator[str]:
    """The file of a path, which is written from the importer's folder on; of a package one that has its name."""
    folder = posixpath.dirname(importer)
    if module.endswith(".zig"):
        path = posixpath.normpath(posixpath.join(folder, module))
        if path in modules.paths:
            yield path
        return
    while module not in _OUTSIDE:
        for name in (f"src/{module}.zig", f"{module}.zig", f"{module}/src/root.zig", f"{module}/{module}.zig"):
            path = posixpath.join(folder, name)
            if path in modules.paths and path != importer:
                yield path
                return
        if not folder:
            return
        folder = posixpath.dirname(folder)
