"""To which folder of the source an import of Go leads."""

import posixpath
import re
from collections.abc import Iterator

from docindex_dagster.callgraph.modules import Modules

_MODULE = re.compile(r"^\s*module\s+[\"']?([^\s\"']+)", re.MULTILINE)
_VERSION = re.compile(r"/v\d+$|\.v\d+$")


def _declared(modules: Modules) -> list[tuple[str, str]]:
    """The names of the modules that the go.mod files declare, the longest first, and their folders."""
    texts = [(path, text) for path, text in modules.texts.items() if posixpath.basename(path) == "go.mod"]
    found = [(line[1], posixpath.dirname(path)) for path, text in texts if (line := _MODULE.search(text))]
    return sorted(found, key=lambda item: -len(item[0]))


def find(modules: Modules, _: str, module: str) -> Iterator[str]:
    """The folder of a package, with a slash behind it."""
    declared = modules.derived(_declared)
    inside = [(name, root) for name, root in declared if f"{module}/".startswith(f"{name}/")]
    folders = [posixpath.join(root, module[len(name) + 1 :]).rstrip("/") for name, root in inside]
    if not declared and "." in module.partition("/")[0]:  # the folder that ends as the path does behind host and owner
        parts = module.split("/")
        folders = ["/".join(parts[start:]) for start in range(2, len(parts))]
    yield from [f"{folder}/" for folder in folders if folder in modules.folders][:1]


def package_name(module: str) -> str:
    """The name that a package most likely has, of which only the path is known."""
    return _VERSION.sub("", module).rpartition("/")[2].removeprefix("go-").removesuffix("-go")
