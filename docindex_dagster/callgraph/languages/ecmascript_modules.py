"""To which file of the source an import of JavaScript or TypeScript leads."""

import json
import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Any

from docindex_dagster.callgraph.modules import Modules

_COMPONENTS = (".vue", ".svelte", ".astro")
_ENDINGS = ("", ".ts", ".tsx", ".d.ts", ".js", ".jsx", ".mjs", ".cjs", ".json", ".mts", ".cts", *_COMPONENTS)
_INDEX = ("/index.ts", "/index.tsx", "/index.js", "/index.jsx", "/index.mjs", "/index.d.ts")
_WRITTEN = re.compile(r"\.(?:m|c)?jsx?$")
_COMMENTS = re.compile(r"//[^\n\"]*$|/\*.*?\*/|,(?=\s*[}\]])", re.MULTILINE | re.DOTALL)
_MAIN = ("src/index", "index", "src/main", "lib/index")

_Alias = tuple[str, str, str]
"""The folder in which it is known, a pattern, and what it stands for."""


def _configured(modules: Modules) -> tuple[list[_Alias], Mapping[str, str]]:
    """What the configurations stand for that can be read, and the folders of the packages of the source, by name."""
    aliases: list[_Alias] = []
    packages: dict[str, str] = {}
    for path, text in modules.texts.items():
        try:
            values = _mapping(json.loads(_COMMENTS.sub("", text)))
        except ValueError:
            continue
        folder, file = posixpath.split(path)
        aliases += (_of_package if file == "package.json" else _of_options)(values, folder)
        if file == "package.json" and isinstance(name := values.get("name"), str):
            packages[name] = folder
    return aliases, packages


def _of_options(values: Mapping[str, Any], folder: str) -> Iterator[_Alias]:
    """What the options of the compiler name, and where it looks for all other names."""
    options = _mapping(values.get("compilerOptions"))
    base = options.get("baseUrl")
    root = posixpath.normpath(posixpath.join(folder, base if isinstance(base, str) else "."))
    for pattern, targets in _mapping(options.get("paths")).items():
        yield from ((folder, pattern, posixpath.join(root, target)) for target in _targets(targets))
    if "baseUrl" in options:
        yield folder, "*", posixpath.join(root, "*")


def _of_package(values: Mapping[str, Any], folder: str) -> Iterator[_Alias]:
    """What a package names inside, as `#name`, and what others find in it, as `package/name`."""
    name = values.get("name")
    for entry, within, before in (("imports", folder, ""), ("exports", "", name)):
        named = values.get(entry)
        named = {".": named} if isinstance(named, str) else _mapping(named)
        for key, target in named.items() if isinstance(before, str) else ():
            pattern = f"{before}{key.removeprefix('.')}"
            for path in _targets(target) if pattern and key.startswith((".", "#")) else ():
                if path.startswith("./"):
                    yield within, pattern, posixpath.join(folder, path)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _targets(target: object) -> Iterator[str]:
    """The files of an entry, which may differ from case to case."""
    if isinstance(target, str):
        yield target
    for inner in target.values() if isinstance(target, dict) else target if isinstance(target, list) else ():
        yield from _targets(inner)


def find(modules: Modules, importer: str, module: str) -> Iterator[str]:
    """The file of a path, an alias or a package."""
    for stem in _stems(modules, importer, module):
        if path := _file(modules, posixpath.normpath(stem)):
            yield path
            return


def _stems(modules: Modules, importer: str, module: str) -> Iterator[str]:
    """The paths without endings that a name may stand for."""
    if module.startswith("."):
        yield posixpath.join(posixpath.dirname(importer), module)
        return
    aliases, packages = modules.derived(_configured)
    for folder, pattern, target in aliases:
        before, star, after = pattern.partition("*")
        is_meant = module == pattern or (star and module.startswith(before) and module.endswith(after))
        if is_meant and importer.startswith(posixpath.join(folder, "")):
            yield target.replace("*", module[len(before) : len(module) - len(after)] if star else "")
    parts = module.split("/")
    for length in (2, 1):
        root = packages.get("/".join(parts[:length]))
        rest = "/".join(parts[length:])
        if root is not None:
            yield from (posixpath.join(root, inside) for inside in ((rest, f"src/{rest}") if rest else _MAIN))


def _file(modules: Modules, stem: str) -> str | None:
    """The file of a path without its ending, or with that of what is compiled to it."""
    for name in dict.fromkeys((stem, _WRITTEN.sub("", stem))):
        for ending in (*_ENDINGS, *_INDEX):
            path = f"{name}{ending}".removeprefix("./")
            if path in modules.paths:
                return path
    return None
