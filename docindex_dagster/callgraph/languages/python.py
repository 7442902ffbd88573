"""Python: what its grammar calls expressions and statements, and the files that imports lead to."""

import builtins
import posixpath
from collections.abc import Iterator, Mapping

from docindex_dagster.callgraph.extract.expressions import Expressions, Syntax
from docindex_dagster.callgraph.extract.library import attribute, bounded, first, last, typed
from docindex_dagster.callgraph.modules import Modules, nearest, upwards
from docindex_dagster.callgraph.rules import Rules

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


_SAME = "list tuple set sorted reversed enumerate iter next weakref.proxy"

_EXPRESSIONS = Expressions(
    names=frozenset({"identifier", "dotted_name"}),
    members={"attribute": ("object", "attribute")},
    calls={"call": "function"},
    items={"subscript": "value"},
    through={"await": "", "parenthesized_expression": "", "named_expression": "value", "type": "", "as_pattern": ""},
    either={"conditional_expression": ("0", "-1"), "boolean_operator": ("left", "right")},
    collections={
        "list": "",
        "set": "",
        "tuple": "",
        "dictionary": "value",
        "list_comprehension": "body",
        "set_comprehension": "body",
        "generator_expression": "body",
    },
    literals={
        "string": "str",
        "concatenated_string": "str",
        "integer": "int",
        "float": "float",
        "true": "bool",
        "false": "bool",
        "none": "None",
    },
    library={
        **dict.fromkeys(_SAME.split(), last),
        **dict.fromkeys(("update_wrapper", "functools.update_wrapper"), first),
        **dict.fromkeys(("TypeVar", "t.TypeVar", "typing.TypeVar"), bounded),
        **dict.fromkeys(("cast", "t.cast", "typing.cast"), typed),
        "type": attribute("__class__"),
    },
)

SYNTAX = Syntax(("python",), _EXPRESSIONS, has_selves=True)

RULES = Rules(
    "python",
    find=find,
    redefines=True,
    runs=("__call__",),
    constructors=frozenset({"__init__", "__new__"}),
    self_name="self",
    class_name="cls",
    has_decorators=True,
    has_local_imports=True,
    has_fixtures=True,
    wrappers=frozenset({"Optional", "Annotated", "Final", "ClassVar", "Awaitable", "Coroutine", "Type", "type"}),
    class_types=frozenset({"Type", "type"}),
    classes=frozenset({"__class__"}),
    properties=frozenset({"property", "cached_property", "functools.cached_property"}),
    builtins=frozenset(dir(builtins)),
)
