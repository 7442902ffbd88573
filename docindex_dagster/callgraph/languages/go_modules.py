"""To which folder of the source an import of Go leads."""

import posixpath
import re
from collections.abc import Iterator, Mapping

from docindex_dagster.callgraph.modules import Modules

_MODULE = re.compile(r"^\s*module\s+[\"']?([^\s\"']+)", re.MULTILINE)
_VERSION = re.compile(r"/v\d+$|\.v\d+$")


def declared_modules(modules: Modules) -> list[tuple[str, str]]:
    """The names of the modules that the go.mod files declare, the longest first, and their folders."""
    names = {path: modules.configuration(path, _parse).get("module") for path in modules.called("go.mod")}
    found = [(name, posixpath.dirname(path)) for path, name in names.items() if name]
    return sorted(found, key=lambda item: -len(item[0]))


def _parse(text: str) -> Mapping[str, str]:
    """Parse the one line of a go.mod that counts."""
    line = _MODULE.search(text)
    if line is None:
        raise ValueError("it names no module")
    return {"module": line[1]}


def find(modules: Modules, _: str, module: str) -> Iterator[str]:
    """The folder of a package, with a slash behind it."""
    declared = modules.derived(declared_modules)
    inside = [(name, root) for name, root in declared if f"{module}/".startswith(f"{name}/")]
    folders = [posixpath.join(root, module[len(name) + 1 :]).rstrip("/") for name, root in inside]
    if not declared and "." in module.partition("/")[0]:  # the folder that ends as the path does behind host and owner
        parts = module.split("/")
        folders = ["/".join(parts[start:]) for start in range(2, len(parts))]
    yield from [f"{folder}/" for folder in folders if folder in modules.folders][:1]


def package_name(module: str) -> str:
    """The name that a package most likely has, of which only the path is known."""
    return _VERSION.sub("", module).rpartition("/")[2].removeprefix("go-").removesuffix("-go")
