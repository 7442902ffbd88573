"""To which file of the source a `require` of Ruby leads."""

import posixpath
from collections.abc import Iterator

from docindex_dagster.callgraph.modules import Modules


def find(modules: Modules, importer: str, module: str) -> Iterator[str]:
    """The file of a module: beside the importer by `require_relative`, else in a folder that is searched."""
    name = module if module.endswith(".rb") else f"{module}.rb"
    if module.startswith("."):
        path = posixpath.normpath(posixpath.join(posixpath.dirname(importer), name))
        if path in modules.paths:
            yield path
        return
    folder = posixpath.dirname(importer)
    while True:
        for root in (folder, posixpath.join(folder, "lib"), posixpath.join(folder, "app")):
            path = posixpath.join(root, name)
            if path in modules.paths:
                yield path
                return
        if not folder:
            return
        folder = posixpath.dirname(folder)
