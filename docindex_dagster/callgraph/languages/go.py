"""Go: syntax, rules and import resolution."""

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from docindex_dagster.callgraph.extract.expressions import Blocks, Expressions, Node, Read, Syntax
from docindex_dagster.callgraph.extract.library import joined, typed
from docindex_dagster.callgraph.ir import FILE, Element, Expression, FileIR
from docindex_dagster.callgraph.modules import Modules
from docindex_dagster.callgraph.resolver.values import Resolution, Value
from docindex_dagster.callgraph.rules import Hooks, Queries, Rules, Unit

_MODULE = re.compile(r"^\s*module\s+[\"']?([^\s\"']+)", re.MULTILINE)
_VERSION = re.compile(r"/v\d+$|\.v\d+$")


def declared_modules(modules: Modules) -> list[tuple[str, str]]:
    """Return the modules declared in go.mod files, longest name first, with their folders."""
    names = {path: modules.configuration(path, _parse).get("module") for path in modules.called("go.mod")}
    found = [(name, posixpath.dirname(path)) for path, name in names.items() if name]
    return sorted(found, key=lambda item: -len(item[0]))


def _parse(text: str) -> Mapping[str, str]:
    """Parse the `module` directive of a go.mod file."""
    line = _MODULE.search(text)
    if line is None:
        raise ValueError("no module directive found")
    return {"module": line[1]}


def find(modules: Modules, _: str, module: str) -> Iterator[str]:
    """Yield the folder of a package, with a trailing slash."""
    declared = modules.derived(declared_modules)
    inside = [(name, root) for name, root in declared if f"{module}/".startswith(f"{name}/")]
    folders = [posixpath.join(root, module[len(name) + 1 :]).rstrip("/") for name, root in inside]
    if not declared and "." in module.partition("/")[0]:  # match the path after host and owner
        parts = module.split("/")
        folders = ["/".join(parts[start:]) for start in range(2, len(parts))]
    yield from [f"{folder}/" for folder in folders if folder in modules.folders][:1]


def package_name(module: str) -> str:
    """Guess the name of a package from its path."""
    return _VERSION.sub("", module).rpartition("/")[2].removeprefix("go-").removesuffix("-go")


def _operand(node: Node, read: Read) -> Expression:
    """Return the operand of a unary operator; for `<-`, the received element."""
    operand = read(node.child_by_field_name("operand"))
    return Element(operand) if (node.text or b"").startswith(b"<-") else operand


_EXPRESSIONS = Expressions(
    names=frozenset({"identifier", "type_identifier", "field_identifier", "package_identifier"}),
    members={"selector_expression": ("operand", "field"), "qualified_type": ("package", "name")},
    calls={"call_expression": "function", "type_conversion_expression": "type"},
    items={
        "index_expression": "operand",
        "variadic_argument": "",
        "generic_type": "type",
        "type_instantiation_expression": "",
    },
    indexed={"call_expression": "type_arguments"},
    through={
        "parenthesized_expression": "",
        "slice_expression": "operand",
        "literal_element": "",
        "expression_list": "",
    },
    readers={"unary_expression": _operand},
    casts={"type_assertion_expression": "type"},
    composites={"composite_literal": ("type", "body")},
    literals={
        "interpreted_string_literal": "string",
        "raw_string_literal": "string",
        "int_literal": "int",
        "float_literal": "float64",
        "rune_literal": "rune",
        "true": "bool",
        "false": "bool",
        "nil": "nil",
    },
    library={"make": typed, "new": typed, "append": joined},
)

SYNTAX = Syntax(
    ("go",),
    _EXPRESSIONS,
    frozenset({"function_declaration", "method_declaration", "func_literal"}),
    frozenset({"func_literal"}),
    frozenset({"short_var_declaration", "var_spec"}),
    blocks=Blocks(
        frozenset(
            {
                "block",
                "if_statement",
                "for_statement",
                "type_case",
                "expression_case",
                "communication_case",
                "default_case",
                "type_switch_statement",
                "expression_switch_statement",
                "func_literal",
                "function_declaration",
                "method_declaration",
            }
        ),
        frozenset({"short_var_declaration", "var_spec", "const_spec", "range_clause", "receive_statement"}),
        frozenset({"assignment_statement"}),
    ),
)

_BUILTINS = """
    any append bool byte cap chan clear close comparable complex complex128 complex64 copy delete error false float32
    float64 func imag int int16 int32 int64 int8 iota len make map max min new nil panic print println real recover
    rune string true uint uint16 uint32 uint64 uint8 uintptr Array tuple
"""


def _with_classes(ir: FileIR) -> FileIR:
    """Turn all named types of a file into classes, since each may have methods."""
    definitions = (one._replace(kind="class") if one.kind == "type" else one for one in ir.definitions)
    return replace(ir, definitions=tuple(definitions))


def _of_neighbours(q: Queries, unit: Unit, name: str) -> Iterator[Value]:
    """Yield the definitions of a name in the other files of the folder."""
    folder = unit.path.rpartition("/")[0]
    for other, _ in q.in_files(q.program.tops, unit, f"{folder}::{name}"):
        is_local = any(one.is_local for one in other.children_of(FILE, name))
        if other is not unit and other.namespace == unit.namespace and not is_local:
            yield from q.top(other, name, Resolution.PACKAGE)


RULES = Rules(
    "go",
    find=find,
    sharing="folder",
    has_open_classes=True,
    has_class_scope=False,
    infers_fields=True,
    calls_classes=False,
    builtins=frozenset(_BUILTINS.split()),
    hooks=Hooks(prepare=_with_classes, shared=_of_neighbours, package=package_name),
)
