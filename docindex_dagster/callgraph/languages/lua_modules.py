"""To which file of the source a `require` of Lua leads."""

import posixpath
from collections.abc import Iterator

from docindex_dagster.callgraph.modules import Modules

_ROOTS = ("", "lua", "src", "lib", "app")


def find(modules: Modules, importer: str, module: str) -> Iterator[str]:
    """The file of a module: in the folder of the importer or one above, or in a folder there that is searched."""
    written = module.removeprefix("./")
    stem = written.removesuffix(".lua") if written.endswith(".lua") else written.replace(".", "/")
    folder = posixpath.dirname(importer)
    while True:
        for root in _ROOTS:
            for name in (f"{stem}.lua", f"{stem}/init.lua"):
                path = posixpath.normpath(posixpath.join(folder, root, name))
                if path in modules.paths and path != importer:
                    yield path
                    return
        if not folder:
            return
        folder = posixpath.dirname(folder)
