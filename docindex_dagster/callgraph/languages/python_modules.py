"""To which file or folder of the source an import of Python leads."""

import posixpath
from collections.abc import Iterator, Mapping

from docindex_dagster.callgraph.modules import Modules, nearest, upwards

_OPENING = ("__init__.py", "__init__.pyi")
_ENDINGS = (".py", "/__init__.py", ".pyi", "/__init__.pyi")


def find(modules: Modules, importer: str, module: str) -> Iterator[str]:
    """The file or folder of a dotted name, which may begin with dots."""
    name = module.lstrip(".")
    tail = name.replace(".", "/")
    if module == name:
        yield from _absolute(modules, importer, tail)
        return
    folders = [*upwards(posixpath.dirname(importer))]
    stem = posixpath.join(folders[min(len(module) - len(name), len(folders)) - 1], tail).rstrip("/")
    files = (path for ending in _ENDINGS if (path := f"{stem}{ending}".lstrip("/")) in modules.paths)
    yield from [*files, *([f"{stem}/"] if stem in modules.folders else [])][:1]


def _absolute(modules: Modules, importer: str, tail: str) -> Iterator[str]:
    """The nearest file that ends as a path does, else the nearest folder; one where modules are searched, if any is.

    What does not lie beside the importer or above, as in `src`, is found only where its folder is added to those.
    """
    last = posixpath.basename(tail)
    folders = modules.folders_named.get(last, ())
    openings = (f"{folder}/{name}" for folder in folders for name in _OPENING)
    files = [path for path in (*modules.named.get(last, ()), *openings) if path.endswith((".py", ".pyi"))]
    stems = {path: path.rpartition(".")[0].removesuffix("/__init__") for path in files if path in modules.paths}
    found = _rooted(modules, tail, stems) or _rooted(modules, tail, {f"{folder}/": folder for folder in folders})
    searched = [path for path, around in found.items() if importer.startswith(posixpath.join(around, ""))]
    yield from nearest(importer, searched or found)


def _rooted(modules: Modules, tail: str, stems: Mapping[str, str]) -> Mapping[str, str]:
    """Those of some files or folders that have a name, with what is around the folder from which they have it.

    That folder is no package, and in none.
    """
    packages = modules.derived(_packages)
    roots = {
        path: stem.removesuffix(tail).rstrip("/") for path, stem in stems.items() if f"/{stem}".endswith(f"/{tail}")
    }
    return {path: posixpath.dirname(root) for path, root in roots.items() if packages.isdisjoint(upwards(root))}


def _packages(modules: Modules) -> frozenset[str]:
    """The folders that are packages; what is below one is so, too, since empty files are not known."""
    return frozenset(posixpath.dirname(path) for path in modules.paths if posixpath.basename(path) in _OPENING)
