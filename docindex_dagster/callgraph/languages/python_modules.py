"""To which file or folder of the source an import of Python leads."""

import posixpath
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from docindex_dagster.callgraph.modules import Modules

_OPENING = ("__init__.py", "__init__.pyi")


def dotted_names(paths: Iterable[str]) -> Mapping[str, Sequence[str]]:
    """Files by the last parts of their dotted names."""
    known = sorted(paths)
    inside = {posixpath.dirname(path) for path in known if path.endswith(_OPENING)}
    dotted: dict[str, list[str]] = defaultdict(list)
    for path in known:
        if path.endswith((".py", ".pyi")):
            parts = path.rpartition(".")[0].removesuffix("/__init__").split("/")
            for start in range(len(parts)):
                if "/".join(parts[:start]) in inside:  # what is below a package, too: empty files are not known
                    break
                dotted[".".join(parts[start:])].append(path)
    return dotted


def find(modules: Modules, importer: str, module: str) -> Iterator[str]:
    """The file or folder of a dotted name, which may begin with dots."""
    dots = len(module) - len(module.lstrip("."))
    name = module[dots:]
    if dots:
        folder = posixpath.dirname(importer)
        for _ in range(dots - 1):
            folder = posixpath.dirname(folder)
        yield from _python_file(modules, posixpath.join(folder, name.replace(".", "/")) if name else folder)
        return
    found = modules.dotted.get(name, ())
    if found:
        yield _likeliest(importer, name, found)
        return
    tail = name.replace(".", "/")
    folders = [
        folder
        for folder in modules.folders_named.get(posixpath.basename(tail), ())
        if (folder == tail or folder.endswith(f"/{tail}"))
        and not _is_package(modules, folder.removesuffix(tail).rstrip("/"))
    ]
    if folders:
        yield f"{_nearest(importer, folders)}/"


def _is_package(modules: Modules, folder: str) -> bool:
    return any(f"{folder}/{name}".lstrip("/") in modules.paths for name in _OPENING)


def _python_file(modules: Modules, stem: str) -> Iterator[str]:
    for path in (f"{stem}.py", f"{stem}/__init__.py".lstrip("/"), f"{stem}.pyi", f"{stem}/__init__.pyi".lstrip("/")):
        if path in modules.paths:
            yield path
            return
    if stem in modules.folders:
        yield f"{stem}/"


def _likeliest(importer: str, name: str, paths: Sequence[str]) -> str:
    """The nearest of the files of a dotted name; one that lies beside the importer or above, as in `src`, if any does.

    Others are found only where their folder is added to those that are searched.
    """
    around = importer.split("/")[:-1]

    def is_searched(path: str) -> bool:
        parts = path.rpartition(".")[0].removesuffix("/__init__").split("/")
        root = parts[: -name.count(".") - 1]
        return len(root) <= len(posixpath.commonprefix([around, root])) + 1

    return _nearest(importer, [path for path in paths if is_searched(path)] or paths)


def _nearest(importer: str, paths: Sequence[str]) -> str:
    """The path that shares most folders with the importer; the shortest of them."""

    def shared(path: str) -> int:
        return len(posixpath.commonprefix([importer.split("/")[:-1], path.split("/")[:-1]]))

    return min(paths, key=lambda path: (-shared(path), path.count("/"), path))
