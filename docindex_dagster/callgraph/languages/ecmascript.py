"""JavaScript and TypeScript: what their grammars call expressions and statements."""

from dataclasses import replace

from docindex_dagster.callgraph.extract.expressions import Expressions, Read, text_of
from docindex_dagster.callgraph.extract.library import elements, last, loaded, module
from docindex_dagster.callgraph.extract.syntax import Node, Syntax
from docindex_dagster.callgraph.ir import Expression, Name
from docindex_dagster.callgraph.languages import ecmascript_modules
from docindex_dagster.callgraph.rules import Rules


def _class_expression(node: Node, _: Read) -> Expression:
    """A class that is an expression: its name, or the methods in the function around it."""
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

TYPESCRIPT_RULES = Rules(
    "ecmascript",
    find=ecmascript_modules.find,
    candidates=ecmascript_modules.candidates,
    constructors=frozenset({"constructor"}),
    wrappers=frozenset({"Promise", "Readonly", "Partial", "Required", "NonNullable", "Awaited"}),
    callers=frozenset({"call", "apply"}),
    binders=frozenset({"bind"}),
    classes=frozenset({"constructor"}),
    has_prototypes=True,
    has_open_dispatch=True,
    builtins=frozenset(_BUILTINS.split()),
)
JAVASCRIPT_RULES = replace(TYPESCRIPT_RULES, has_overloads=False)
