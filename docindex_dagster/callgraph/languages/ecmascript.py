"""JavaScript and TypeScript: syntax, rules and module resolution."""

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from docindex_dagster.callgraph.extract.expressions import Expressions, Node, Read, Syntax, text_of
from docindex_dagster.callgraph.extract.library import elements, last, loaded, module
from docindex_dagster.callgraph.ir import Expression, Name
from docindex_dagster.callgraph.languages.ecmascript_configs import (
    Configurations,
    entry_paths,
    read_configurations,
    split_name,
)
from docindex_dagster.callgraph.modules import Modules, nearest, upwards
from docindex_dagster.callgraph.nesting import FUNCTIONS
from docindex_dagster.callgraph.resolver.values import MOST_VALUES, Resolution, Value, Values, external
from docindex_dagster.callgraph.rules import Hooks, Queries, Rules, Unit

_COMPONENTS = (".vue", ".svelte", ".astro")
_ENDINGS = ("", ".ts", ".tsx", ".d.ts", ".js", ".jsx", ".mjs", ".cjs", ".json", ".mts", ".cts", *_COMPONENTS)
_INDEX = ("/index.ts", "/index.tsx", "/index.js", "/index.jsx", "/index.mjs", "/index.d.ts")
_WRITTEN = re.compile(r"\.(?:[mc]?jsx?|d\.[mc]?ts)$")
_MAIN = ("src/index", "index", "src/main", "lib/index")


def find(modules: Modules, importer: str, module: str) -> Iterator[str]:
    """Yield the file of a path, an alias or a package."""
    for stem in candidates(modules, importer, module):
        if path := _file(modules, posixpath.normpath(stem)):
            yield path
            return


def candidates(modules: Modules, importer: str, module: str) -> Iterator[str]:
    """Yield the paths, without extensions, that a name may refer to."""
    module = module.partition("?")[0]  # the query tells a bundler how to load the module
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
    """Yield the paths, without extensions, that a name may map to in the nearest package of the source."""
    name, rest = split_name(module)
    packages = configurations.packages.get(name, {})
    for path in nearest(importer, packages):
        yield from entry_paths(packages, path, module)
        inside = (rest, f"src/{rest}") if rest else _MAIN
        yield from (posixpath.join(packages[path].folder, one) for one in inside)


def _file(modules: Modules, stem: str) -> str | None:
    """Return the file of a path without extension, or the source file of a compiled one."""
    for name in dict.fromkeys((stem, _WRITTEN.sub("", stem))):
        for ending in (*_ENDINGS, *_INDEX):
            path = f"{name}{ending}".removeprefix("./")
            if path in modules.paths:
                return path
    return None


def _class_expression(node: Node, _: Read) -> Expression:
    """Return the name of a class expression, or `class` for the methods in the enclosing function."""
    name = node.child_by_field_name("name")
    return Name(text_of(name) if name is not None else "class")


_EXPRESSIONS = Expressions(
    names=frozenset(
        {
            "identifier",
            "import",
            "type_identifier",
            "property_identifier",
            "private_property_identifier",
            "shorthand_property_identifier",
        }
    ),
    members={"member_expression": ("object", "property"), "nested_type_identifier": ("module", "name")},
    calls={"call_expression": "function"},
    new={"new_expression": "constructor"},
    items={"subscript_expression": "object"},
    through={
        "await_expression": "",
        "non_null_expression": "",
        "parenthesized_expression": "",
        "generic_type": "name",
        "satisfies_expression": "",
        "spread_element": "",
        "function_expression": "name",
        "generator_function": "name",
    },
    readers={"class": _class_expression},
    either={"ternary_expression": ("consequence", "alternative"), "binary_expression": ("left", "right")},
    casts={"as_expression": "-1"},
    collections={"array": "", "object": "value", "class_body": "value"},
    keys={"pair": "key", "subscript_expression": "index"},
    written=frozenset({"method_definition", "arrow_function", "function_expression", "generator_function"}),
    lambdas=frozenset({"arrow_function"}),
    values=frozenset({"identifier", "call_expression", "new_expression", "member_expression", "object", "array"}),
    spreads=frozenset({"spread_element"}),
    library={
        **dict.fromkeys(("require", "import"), module),
        **dict.fromkeys(("lazy", "React.lazy", "dynamic", "loadable", "defineAsyncComponent"), loaded),
        **dict.fromkeys(("Object.values", "Array.from", "Promise.all"), elements),
        **dict.fromkeys(("Object.freeze", "Object.seal"), last),
    },
    literals={
        "string": "String",
        "template_string": "String",
        "number": "Number",
        "true": "Boolean",
        "false": "Boolean",
        "regex": "RegExp",
        "null": "null",
    },
    words={"this": "this", "super": "super"},
)

_FUNCTIONS = frozenset(
    {"function_declaration", "method_definition", "generator_function_declaration", "method_signature", "function_type"}
)
_ANONYMOUS = frozenset({"arrow_function", "function_expression", "generator_function", "function_type"})
_NAMING = frozenset(
    {"variable_declarator", "public_field_definition", "field_definition", "assignment_expression", "pair"}
)


JAVASCRIPT_SYNTAX = Syntax(
    ("ecmascript", "javascript", "jsx"),
    _EXPRESSIONS,
    _FUNCTIONS | _ANONYMOUS,
    _ANONYMOUS,
    _NAMING,
    frozenset({"function_type"}),
)
TYPESCRIPT_SYNTAX = replace(JAVASCRIPT_SYNTAX, queries=("ecmascript", "typescript"))
TSX_SYNTAX = replace(TYPESCRIPT_SYNTAX, queries=("ecmascript", "typescript", "jsx"))

_BUILTINS = """
    Array ArrayBuffer BigInt Boolean Buffer DataView Date Error EvalError Float32Array Float64Array Function Infinity
    Int32Array Intl JSON Map Math NaN Number Object Promise Proxy RangeError ReferenceError Reflect RegExp Set String
    Symbol SyntaxError TypeError URL URLSearchParams Uint8Array WeakMap WeakSet alert atob btoa clearInterval
    clearTimeout console decodeURIComponent document encodeURIComponent exports fetch global globalThis isFinite isNaN
    localStorage module navigator parseFloat parseInt performance process queueMicrotask require setImmediate
    setInterval setTimeout structuredClone window string number boolean any unknown object symbol bigint Record
    import ReadonlyArray Iterable Iterator Generator AsyncGenerator AsyncIterable Event EventTarget AbortController
    defineProps defineEmits defineExpose defineModel defineOptions defineSlots withDefaults
    $state $derived $effect $props $bindable $inspect $host Astro Fragment
"""


def _self_reference(_: Queries, unit: Unit, scope: str, name: str) -> Sequence[Value] | None:
    """Resolve `class`, the name used here for an anonymous class."""
    return _unnamed_class(unit, scope) if name == "class" else None


def _unnamed_class(unit: Unit, scope: str) -> Values:
    """Return the anonymous class of a function, whose methods are nested in the function."""
    function = next((around for around in unit.around(scope) if around.kind in FUNCTIONS), None)
    return (Value("literal", unit.path, function.qualified),) if function else ()


def _this(_: Queries, unit: Unit, scope: str) -> Sequence[Value]:
    """Resolve `this` in a class, constructor or literal."""
    holder, is_literal = unit.holder(scope)
    if is_literal:
        owner = unit.class_around(scope)  # an arrow function in a literal keeps `this` of the class
        of_class = [Value("object", unit.path, owner.id)] if owner else []
        return [Value("literal", unit.path, holder), *of_class]
    return [Value("object", unit.path, holder)] if holder in unit.definitions else ()


def _function_member(q: Queries, value: Value, name: str) -> Sequence[Value]:
    """Return a member of a function object: an assigned one or one of all functions."""
    if name == "prototype":
        return [value.as_kind("object")]
    unit, definition = q.unit(value.path), q.definition(value)
    found = q.all_defined(unit, unit.children_of(definition.qualified, name), Resolution.RECEIVER)
    dotted = unit.dotted.get(definition.parent, {}).get(f"{definition.name}.{name}", ())
    found += q.each(unit, definition.parent, dotted[:MOST_VALUES])
    return found or [external(f"Function.{name}")]


TYPESCRIPT_RULES = Rules(
    "ecmascript",
    find=find,
    candidates=candidates,
    constructors=frozenset({"constructor"}),
    wrappers=dict.fromkeys(["Promise", "Readonly", "Partial", "Required", "NonNullable", "Awaited"], "object"),
    call_methods=frozenset({"call", "apply"}),
    bind_methods=frozenset({"bind"}),
    class_attributes=frozenset({"constructor"}),
    has_prototypes=True,
    has_open_dispatch=True,
    builtins=frozenset(_BUILTINS.split()),
    hooks=Hooks(self_reference=_self_reference, this=_this, function_member=_function_member),
)
JAVASCRIPT_RULES = replace(TYPESCRIPT_RULES, has_overloads=False)
