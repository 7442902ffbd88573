"""To which file of the source an import of JavaScript or TypeScript leads."""

import json
import posixpath
import re
from collections.abc import Iterator, Mapping

from docindex_dagster.callgraph.modules import Modules

_ENDINGS = ("", ".ts", ".tsx", ".d.ts", ".js", ".jsx", ".mjs", ".cjs", ".json", ".mts", ".cts")
_INDEX = ("/index.ts", "/index.tsx", "/index.js", "/index.jsx", "/index.mjs", "/index.d.ts")
_WRITTEN = re.compile(r"\.(?:m|c)?jsx?$")
_COMMENTS = re.compile(r"//[^\n\"]*$|/\*.*?\*/|,(?=\s*[}\]])", re.MULTILINE | re.DOTALL)
CONFIGURATIONS = frozenset({"tsconfig.json", "jsconfig.json", "package.json"})


def configured(texts: Mapping[str, str]) -> tuple[list[tuple[str, str, str]], dict[str, str]]:
    """What configurations stand for: in a folder a pattern and what it stands for; packages and their folders."""
    aliases: list[tuple[str, str, str]] = []
    packages: dict[str, str] = {}
    for path, text in texts.items():
        folder = posixpath.dirname(path)
        try:
            values = json.loads(_COMMENTS.sub("", text))
        except ValueError:
            continue
        if not isinstance(values, dict):
            continue
        if posixpath.basename(path) == "package.json":
            if isinstance(name := values.get("name"), str):
                packages[name] = folder
            aliases += _of_package(values, folder)
            continue
        options = values.get("compilerOptions")
        options = options if isinstance(options, dict) else {}
        base = options.get("baseUrl") if isinstance(options.get("baseUrl"), str) else "."
        root = posixpath.normpath(posixpath.join(folder, str(base)))
        root = "" if root == "." else root
        patterns = options.get("paths")
        for pattern, targets in patterns.items() if isinstance(patterns, dict) else ():
            aliases += [(folder, pattern, posixpath.join(root, str(target))) for target in targets or ()]
        if "baseUrl" in options:
            aliases.append((folder, "*", posixpath.join(root, "*")))
    return aliases, packages


def _of_package(values: Mapping[str, object], folder: str) -> Iterator[tuple[str, str, str]]:
    """What a package names inside, as `#name`, and what others find in it, as `package/name`."""
    name = values.get("name")
    for field_name, within, before in (("imports", folder, ""), ("exports", "", name)):
        named = values.get(field_name)
        named = {".": named} if isinstance(named, str) else named
        for key, target in named.items() if isinstance(named, dict) and isinstance(before, str) else ():
            pattern = f"{before}{key.removeprefix('.')}" if key.startswith((".", "#")) else ""
            if pattern:
                aliases = [path for path in _targets(target) if path.startswith("./")]
                yield from ((within, pattern, posixpath.normpath(posixpath.join(folder, path))) for path in aliases)


def _targets(target: object) -> Iterator[str]:
    """The files of an entry, which may differ from case to case."""
    if isinstance(target, str):
        yield target
    for inner in target.values() if isinstance(target, dict) else target if isinstance(target, list) else ():
        yield from _targets(inner)


def find(modules: Modules, importer: str, module: str) -> Iterator[str]:
    """The file of a path, an alias or a package."""
    if module.startswith("."):
        yield from _file(modules, posixpath.normpath(posixpath.join(posixpath.dirname(importer), module)))
        return
    for folder, pattern, target in modules.aliases:
        if folder and not importer.startswith(f"{folder}/"):
            continue
        before, star, after = pattern.partition("*")
        if module == pattern or (star and module.startswith(before) and module.endswith(after)):
            middle = module[len(before) : len(module) - len(after)] if star else ""
            found = [*_file(modules, posixpath.normpath(target.replace("*", middle)))]
            if found:
                yield from found
                return
    parts = module.split("/")
    for length in (2, 1):
        name = "/".join(parts[:length])
        if name in modules.packages:
            rest = "/".join(parts[length:])
            folder = modules.packages[name]
            for inside in [rest, f"src/{rest}"] if rest else ["src/index", "index", "src/main", "lib/index"]:
                if found := [*_file(modules, posixpath.join(folder, inside))]:
                    yield from found
                    return


def _file(modules: Modules, stem: str) -> Iterator[str]:
    stems = [stem, _WRITTEN.sub("", stem)] if _WRITTEN.search(stem) else [stem]
    for name in stems:
        for ending in (*_ENDINGS, *_INDEX):
            path = name + ending if name not in {".", ""} else ending.lstrip("/")
            if path in modules.paths:
                yield path
                return
