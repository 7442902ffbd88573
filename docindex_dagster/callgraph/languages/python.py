"""Python: syntax, rules and import resolution."""

import builtins
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from docindex_dagster.callgraph.extract.expressions import Expressions, Syntax
from docindex_dagster.callgraph.extract.library import attribute, bounded, first, last, typed
from docindex_dagster.callgraph.ir import FILE, Call, Definition, FileIR, last_name, path_of
from docindex_dagster.callgraph.modules import Modules, nearest, upwards
from docindex_dagster.callgraph.nesting import is_class
from docindex_dagster.callgraph.resolver.values import Kind, Resolution, Value, Values
from docindex_dagster.callgraph.rules import Hooks, Queries, Rules, Unit

_PACKAGE_FILES = ("__init__.py", "__init__.pyi")
_ENDINGS = (".py", "/__init__.py", ".pyi", "/__init__.pyi")
_WRAPPERS: Mapping[str, Kind] = {
    **dict.fromkeys(["Optional", "Annotated", "Final", "ClassVar", "Awaitable", "Coroutine"], "object"),
    **dict.fromkeys(["Type", "type"], "class"),
}
_PROPERTIES = frozenset({"property", "cached_property", "functools.cached_property"})
_CONFTEST = "conftest.py"


def find(modules: Modules, importer: str, module: str) -> Iterator[str]:
    """Yield the file or folder of a dotted name, which may be relative."""
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
    """Yield the nearest file, or else the nearest folder, whose path ends with `tail`.

    Import roots whose parent folder contains the importer are preferred; other roots are importable only if they have
    been added to the search path.
    """
    last = posixpath.basename(tail)
    folders = modules.folders_named.get(last, ())
    openings = (f"{folder}/{name}" for folder in folders for name in _PACKAGE_FILES)
    files = [path for path in (*modules.named.get(last, ()), *openings) if path.endswith((".py", ".pyi"))]
    stems = {path: path.rpartition(".")[0].removesuffix("/__init__") for path in files if path in modules.paths}
    found = _rooted(modules, tail, stems) or _rooted(modules, tail, {f"{folder}/": folder for folder in folders})
    searched = [path for path, around in found.items() if importer.startswith(posixpath.join(around, ""))]
    yield from nearest(importer, searched or found)


def _rooted(modules: Modules, tail: str, stems: Mapping[str, str]) -> Mapping[str, str]:
    """Return the paths whose stem ends with `tail`, each with the parent of its import root.

    An import root is a folder that is neither a package nor inside one.
    """
    packages = modules.derived(_packages)
    roots = {
        path: stem.removesuffix(tail).rstrip("/") for path, stem in stems.items() if f"/{stem}".endswith(f"/{tail}")
    }
    return {path: posixpath.dirname(root) for path, root in roots.items() if packages.isdisjoint(upwards(root))}


def _packages(modules: Modules) -> frozenset[str]:
    """Return the folders with `__init__`; their subfolders count as packages too, since empty files are not indexed."""
    return frozenset(posixpath.dirname(path) for path in modules.paths if posixpath.basename(path) in _PACKAGE_FILES)


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


def _with_properties(ir: FileIR) -> FileIR:
    """Mark methods with a property decorator as read like attributes."""
    found = [one.decorated for one in ir.decorators if path_of(one.value) in _PROPERTIES]
    return replace(ir, properties=(*ir.properties, *found)) if found else ir


def _member(_: Queries, __: Value, name: str) -> Values | None:
    """Return no members for the parts of an unpacked object."""
    return () if name.isdecimal() else None


def _runs(_: Queries, value: Value) -> Values | None:
    """Return nothing for a call of `super()`, which runs no code."""
    return () if value.kind == "parent" else None


def _result(_: Queries, __: Unit, value: Value) -> Values | None:
    """Return the result of `super()`."""
    return (value,) if value.kind == "parent" else None


def _elements(_: Queries, value: Value) -> Values:
    """Return the class for a subscript with type arguments."""
    return (value,) if value.kind == "class" else ()


def _fixture_of(q: Queries, unit: Unit, function: Definition, name: str) -> Value | None:
    """Return the pytest fixture for a parameter of a test or fixture: the nearest in its class, file or folders.

    A fixture that has a parameter with its own name receives another fixture.
    """
    if function.name.startswith("test") or _is_fixture(unit, function):
        for other, scope in _places(q, unit, function):
            for one in other.children_of(scope, name):
                if _is_fixture(other, one) and (other.path, one.id) != (unit.path, function.id):
                    return Value("function", other.path, one.id, Resolution.ARGUMENT)
    return None


def _places(q: Queries, unit: Unit, function: Definition) -> Iterator[tuple[Unit, str]]:
    """Yield the places where fixtures may be defined, nearest first."""
    yield from ((unit, around) for around in dict.fromkeys((function.parent, FILE)))
    folder = unit.path
    while folder:
        folder = posixpath.dirname(folder)
        path = posixpath.join(folder, _CONFTEST)
        if path != unit.path and q.program.is_file(path):
            yield q.unit(path), FILE


def _is_fixture(unit: Unit, definition: Definition) -> bool:
    return any(last_name(value) == "fixture" for value in unit.decorated_by(definition.id))


def _decorated(q: Queries, unit: Unit, definition: Definition) -> Iterator[Value]:
    """Yield the object that the outermost decorator returns: by declared type, or an instance of a decorator class."""
    for expression in unit.decorated_by(definition.id)[:1]:
        is_called = isinstance(expression, Call)
        callee = expression.callee if isinstance(expression, Call) else expression
        for decorator in q.values(unit, definition.parent, callee):
            for result in _declared_results(q, decorator):
                of_callable = result.held[-1:] if result.name.rpartition(".")[2] == "Callable" else ()
                returned = of_callable if is_called else (result,)
                yield from (one.found(Resolution.RETURNED) for one in returned if one.kind == "object")


def _declared_results(q: Queries, function: Value) -> Iterator[Value]:
    """Yield the declared results of a function or of each of its overloads; for a class, an instance."""
    if function.kind == "class":
        yield function.as_kind("object")
    if function.kind == "function":
        unit, own = q.unit(function.path), q.definition(function)
        overloads = [one for one in unit.same_named(own.qualified) if _is_overload(unit, one)]
        for one in overloads or [own]:
            yield from q.typed(unit, one.id, one.returns, None) if one.returns else ()


def _is_overload(unit: Unit, definition: Definition) -> bool:
    """Return whether a function is an `@overload` declaration."""
    return any(last_name(value) == "overload" for value in unit.decorated_by(definition.id))


def _this(q: Queries, unit: Unit, scope: str) -> Sequence[Value] | None:
    """Resolve `self` or `cls`: the receiver of a method, or the declared parameter of a function outside a class."""
    for around in unit.around(scope):
        name = next((one for one in ("cls", "self") if unit.has_parameter(around.id, one)), None)
        if name is not None:
            is_method = around.parent in unit.definitions and is_class(unit.definitions[around.parent])
            if not is_method and (declared := q.parameter(unit, around, name)):
                return declared
            owner = q.owner(unit, scope)
            return [owner.as_kind("class" if name == "cls" else "object")] if owner else []
    return None


def _shares_this(unit: Unit, functions: Sequence[Definition]) -> bool:
    """Return whether nested functions share `self`: False if one has `cls`, or an inner one its own `self`."""
    takes_class = any(unit.has_parameter(one.id, "cls") for one in functions)
    return not takes_class and not any(unit.has_parameter(one.id, "self") for one in functions[:-1])


RULES = Rules(
    "python",
    find=find,
    redefines=True,
    runs=("__call__",),
    constructors=frozenset({"__init__", "__new__"}),
    has_local_imports=True,
    wrappers=_WRAPPERS,
    class_attributes=frozenset({"__class__"}),
    builtins=frozenset(dir(builtins)),
    hooks=Hooks(
        prepare=_with_properties,
        this=_this,
        shares_this=_shares_this,
        decorated=_decorated,
        injected=_fixture_of,
        member=_member,
        runs=_runs,
        result=_result,
        elements=_elements,
    ),
)
