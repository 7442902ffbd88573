"""To which file of the source an import of JavaScript or TypeScript leads."""

import posixpath
import re
from collections.abc import Iterator

from docindex_dagster.callgraph.languages.ecmascript_configs import (
    Configurations,
    entry_paths,
    read_configurations,
    split_name,
)
from docindex_dagster.callgraph.modules import Modules, nearest, upwards

_COMPONENTS = (".vue", ".svelte", ".astro")
_ENDINGS = ("", ".ts", ".tsx", ".d.ts", ".js", ".jsx", ".mjs", ".cjs", ".json", ".mts", ".cts", *_COMPONENTS)
_INDEX = ("/index.ts", "/index.tsx", "/index.js", "/index.jsx", "/index.mjs", "/index.d.ts")
_WRITTEN = re.compile(r"\.(?:[mc]?jsx?|d\.[mc]?ts)$")
_MAIN = ("src/index", "index", "src/main", "lib/index")


def find(modules: Modules, importer: str, module: str) -> Iterator[str]:
    """The file of a path, an alias or a package."""
    for stem in candidates(modules, importer, module):
        if path := _file(modules, posixpath.normpath(stem)):
            yield path
            return


def candidates(modules: Modules, importer: str, module: str) -> Iterator[str]:
    """The paths without endings that a name may stand for."""
    module = module.partition("?")[0]  # which says how a bundler loads it
    if module.startswith("."):
        yield posixpath.join(posixpath.dirname(importer), module)
        return
    configurations = modules.derived(read_configurations)
    for scope in upwards(importer):
        for alias in configurations.aliases.get(scope, ()):
            if (target := alias.expand(module)) is not None:
                yield from _packaged(configurations, importer, target) if alias.is_module else (target,)
    yield from _packaged(configurations, importer, module)


def _packaged(configurations: Configurations, importer: str, module: str) -> Iterator[str]:
    """Return the paths, without extensions, that a name may map to in the nearest package of the source."""
    name, rest = split_name(module)
    packages = configurations.packages.get(name, {})
    for path in nearest(importer, packages):
        yield from entry_paths(packages, path, module)
        inside = (rest, f"src/{rest}") if rest else _MAIN
        yield from (posixpath.join(packages[path].folder, one) for one in inside)


def _file(modules: Modules, stem: str) -> str | None:
    """The file of a path without its ending, or with that of what is compiled to it."""
    for name in dict.fromkeys((stem, _WRITTEN.sub("", stem))):
        for ending in (*_ENDINGS, *_INDEX):
            path = f"{name}{ending}".removeprefix("./")
            if path in modules.paths:
                return path
    return None
