"""To which folder of the source an import of Go leads."""

import posixpath
import re
from collections.abc import Iterator, Mapping

from docindex_dagster.callgraph.modules import Modules

_MODULE = re.compile(r"^\s*module\s+[\"']?([^\s\"']+)", re.MULTILINE)
_VERSION = re.compile(r"/v\d+$|\.v\d+$")


def declared(texts: Mapping[str, str]) -> list[tuple[str, str]]:
    """The names of the modules that the go.mod files declare, the longest first, and their folders."""
    found = [
        (line[1], posixpath.dirname(path))
        for path, text in texts.items()
        if posixpath.basename(path) == "go.mod" and (line := _MODULE.search(text))
    ]
    return sorted(found, key=lambda item: -len(item[0]))


def find(modules: Modules, _: str, module: str) -> Iterator[str]:
    """The folder of a package, with a slash behind it."""
    for name, root in modules.go:
        if module == name or module.startswith(f"{name}/"):
            folder = posixpath.join(root, module[len(name) + 1 :]).rstrip("/")
            if folder in modules.folders:
                yield f"{folder}/"
                return
    if modules.go or "." not in module.partition("/")[0]:
        return
    parts = module.split("/")  # without a go.mod: the folder that ends as the path does after host and owner
    for start in range(2, len(parts)):
        if (folder := "/".join(parts[start:])) in modules.folders:
            yield f"{folder}/"
            return


def package_name(module: str) -> str:
    """The name that a package most likely has, of which only the path is known."""
    return _VERSION.sub("", module).rpartition("/")[2].removeprefix("go-").removesuffix("-go")
