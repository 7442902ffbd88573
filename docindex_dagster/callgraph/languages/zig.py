"""Zig: syntax and rules.

A chain such as `list.items[0].?.run()` is a single node with its parts as children, read from left to right. Functions
whose names start with a capital letter return types. Pointers, optionals and slices are treated as their elements.
"""

import re
from collections.abc import Iterable, Sequence

from docindex_dagster.callgraph.extract.expressions import (
    Blocks,
    Expressions,
    Node,
    Read,
    Syntax,
    nodes_around,
    text_of,
)
from docindex_dagster.callgraph.extract.library import last, module, something
from docindex_dagster.callgraph.ir import (
    THIS,
    UNKNOWN,
    Attribute,
    Call,
    Definition,
    Element,
    Expression,
    Instance,
    Name,
    TypeRef,
    path_of,
)
from docindex_dagster.callgraph.modules import Search
from docindex_dagster.callgraph.nesting import is_class
from docindex_dagster.callgraph.resolver.values import MOST_VALUES, Resolution, Value, Values, external_object, found_by
from docindex_dagster.callgraph.rules import Arguments, Hooks, Queries, Rules, Unit

_DECLARED = frozenset({"VarDecl", "ContainerField"})
_OUTSIDE = frozenset({"Decl", "Block", "FnCallArguments", "InitList", "source_file"})
_BUILTIN_RESULTS = {"@import": module, **dict.fromkeys(("@ptrCast", "@alignCast", "@constCast", "@volatileCast"), last)}
_MOST_PARTS = 60  # of a chain, which is read once for each call in it
_FUNCTION = Instance(TypeRef("func"))
_BY_KEY = ("Map", "MapUnmanaged", "EnumArray")
_OF_ANY = frozenset({"else", "value_ptr", "value"})  # the `else` prong of a switch, and fields of map entries
_INDEXED = frozenset({"class", "object", "module"})
_SAME = frozenset({"clone", "iterator", "keyIterator", "valueIterator", "toOwnedSlice", "items", "slice"})


def _chain(node: Node, read: Read) -> Expression:
    """Return the expression of a chain, or an instance of a declared type."""
    declared = _type_with(node)
    if declared is not None and text_of(declared).startswith("fn"):
        return _FUNCTION
    if declared is not None and (found := _declared(text_of(node))) is not UNKNOWN:
        return found
    return _up_to(node, None, read)


def _callee(node: Node, read: Read) -> Expression:
    """Return the callee of an argument list; unknown for builtin functions."""
    around = node.parent
    if around is None or around.type == "SuffixExpr":
        called = _up_to(around, node, read)
    else:
        called = _member(_up_to(around.parent, around, read), around.child_by_field_name("function_call"))
    return UNKNOWN if _is_builtin(called) else called


def _up_to(chain: Node | None, end: Node | None, read: Read) -> Expression:
    """Return the expression of a chain, up to but excluding a part."""
    found: Expression = UNKNOWN
    if chain is None or chain.named_child_count > _MOST_PARTS:
        return UNKNOWN
    for part in chain.named_children:
        if end is not None and part.id == end.id:
            break
        found = _with(found, part, read)
        if found is UNKNOWN:
            break
    return found


def _with(found: Expression, part: Node, read: Read) -> Expression:  # noqa: PLR0911 one per part
    """Extend a chain with a part."""
    match part.type:
        case "FieldOrFnCall":
            name, called = part.child_by_field_name("field_access"), part.child_by_field_name("function_call")
            member = _member(found, name or called)
            return _called(member, part.named_children[-1], read) if called is not None else member
        case "FnCallArguments":
            return _called(found, part, read)
        case "SuffixOp":
            return Element(found) if text_of(part).startswith("[") else found
        case "BUILTINIDENTIFIER":
            return Name(text_of(part))
        case "IDENTIFIER" if text_of(part.prev_sibling) == ".":
            return Attribute(_expected(part), text_of(part))
        case "FnProto":
            return _FUNCTION
        case _:
            return read(part)


def _member(found: Expression, name: Node | None) -> Expression:
    return UNKNOWN if found is UNKNOWN or _is_builtin(found) else Attribute(found, text_of(name))


def _is_builtin(found: Expression) -> bool:
    return isinstance(found, Name) and found.text.startswith("@")


def _called(found: Expression, arguments: Node, read: Read) -> Expression:
    """Return a call; for functions whose names start with a capital letter, an instance of the returned type."""
    written = path_of(found)
    if found is UNKNOWN or _is_builtin(found):
        return _builtin_result(written, arguments.named_children, read)
    is_type = written.rpartition(".")[2][:1].isupper()
    instance = _declared(f"{written}{text_of(arguments)}") if is_type else UNKNOWN
    return Call(found) if instance is UNKNOWN else instance


def _builtin_result(function: str, arguments: list[Node], read: Read) -> Expression:
    """Return the result of a builtin function: a module, the enclosing type or the value of a cast."""
    if function == "@This":
        return THIS
    if function == "@as" and arguments:
        return _declared(text_of(arguments[0]))
    rule = _BUILTIN_RESULTS.get(function)
    return (rule(arguments, read) or UNKNOWN) if rule is not None else UNKNOWN


def _type_with(chain: Node) -> Node | None:
    """Return the declared type that a chain is or ends; None if it is not a type annotation."""
    node = chain
    while node.parent is not None and node.parent.type == "ErrorUnionExpr":
        node = node.parent
    if node.parent is not None and node.parent.type == "ParamType":
        return node
    before = node.prev_sibling if node.parent is not None and node.parent.type in _DECLARED else None
    return node if before is not None and before.type in {":", "PrefixTypeOp"} else None


def _declared(written: str) -> Expression:
    """Return an instance of a declared type, whose arguments are in parentheses."""
    return UNKNOWN if "@" in written else something(written.replace("(", "<").replace(")", ">"))


def _expected(chain: Node) -> Expression:
    """Return the contextual type of `.name`: the declared type of the variable or of the function's result."""
    for node in nodes_around(chain):
        if node.type in _DECLARED:
            types = _types_in(node)
            return _declared(text_of(types[0])) if len(types) > 1 else UNKNOWN
        if node.type == "AssignExpr" and node.children[0].type == "return":
            function = next((around for around in nodes_around(node) if around.type == "Decl"), node)
            results = _types_in(function.named_children[0])
            return _declared(text_of(results[-1].named_children[-1])) if results else UNKNOWN
        if node.type in _OUTSIDE:
            break
    return UNKNOWN


def _types_in(node: Node) -> list[Node]:
    return [child for child in node.named_children if child.type == "ErrorUnionExpr"]


_EXPRESSIONS = Expressions(
    names=frozenset({"IDENTIFIER"}),
    through={
        "ErrorUnionExpr": "-1",
        "UnaryExpr": "left",
        "GroupedExpr": "",
        "AssignExpr": "",
        "ForItem": "",
    },
    either={"BinaryExpr": ("left", "right"), "IfExpr": ("1", "-1")},
    labels={"FieldInit": "field_member"},
    adjacent=frozenset({"InitList", "PrefixTypeOp"}),
    literals={"STRINGLITERALSINGLE": "string", "INTEGER": "int", "FLOAT": "float", "CHAR_LITERAL": "u8"},
    readers={"SuffixExpr": _chain, "FnCallArguments": _callee},
    is_placed=True,
)

_BLOCKS = """
    Block BinaryExpr ContainerDecl FnProto ForExpr ForStatement IfExpr IfStatement SwitchProng WhileExpr WhileStatement
"""

SYNTAX = Syntax(
    ("zig",),
    _EXPRESSIONS,
    blocks=Blocks(frozenset(_BLOCKS.split()), frozenset({"Statement"}), frozenset({"AssignExpr"})),
)

_BUILTINS = """
    Array anyerror anyframe anyopaque anytype bool c_char c_int c_long c_short c_uint c_ulong comptime_float
    comptime_int f128 f16 f32 f64 f80 func i128 i16 i32 i64 i8 isize noreturn type u1 u128 u16 u32 u64 u8 usize void
"""

_MODULES = Search(
    ("{}", "src/{}.zig", "{}.zig", "{}/src/root.zig", "{}/{}.zig"),
    near=re.compile(r"(?:std|builtin|.*\.zig)$"),
)


def _this(_: Queries, unit: Unit, scope: str) -> Sequence[Value]:
    """Resolve the enclosing type: a struct, the type returned by a function, or the file."""
    for around in unit.around(scope):
        if is_class(around):
            return [Value("object", unit.path, around.id)]
        if around.kind == "function" and _is_type_function(unit, around):
            return [Value("function", unit.path, around.id)]
    return [Value("module", unit.path, "")]


def _element_types(name: str, arguments: Arguments) -> Arguments:
    """Return the type argument that is the element type."""
    return arguments[1:2] if name.endswith(_BY_KEY) and len(arguments) > 1 else arguments[:1]


def _function_member(q: Queries, value: Value, name: str) -> Sequence[Value]:
    """Return a member of the type that a function returns, defined in it or in a function that it calls."""
    unit, definition = q.unit(value.path), q.definition(value)
    inside = unit.children_of(definition.qualified, name)
    found = [member for one in inside for member in q.as_member(value, unit, one)]
    found += q.each(unit, definition.id, unit.bindings_of(definition.id, name)[:MOST_VALUES])
    if found:
        return found_by(found, Resolution.RECEIVER)
    returned = q.each(unit, definition.id, unit.returns.get(definition.id, ()))
    return q.all_members([one for one in returned if not one.is_same(value)], name)


def _fallback(q: Queries, value: Value, name: str, found: Sequence[Value]) -> Sequence[Value]:
    """Resolve names that are not members: `else` is any variant of a union, the value of a map entry is itself."""
    if found or name not in _OF_ANY:
        return ()
    if name != "else":
        return [value]
    unit = q.unit(value.path)
    fields = [one for some in unit.bindings.get(value.name, {}).values() for one in some]  # the union's variants
    return q.each(unit, value.name, [one for one in fields if isinstance(one, Instance)][:MOST_VALUES])


def _is_type_function(unit: Unit, function: Definition) -> bool:
    """Return whether a function returns a type that it defines."""
    inside = unit.children.get(function.qualified, {})
    return any(one.kind == "method" for some in inside.values() for one in some)


def _result(q: Queries, _: Unit, value: Value) -> Values | None:
    """Return the function itself if it returns a type, since it represents that type."""
    is_type = value.kind == "function" and _is_type_function(q.unit(value.path), q.definition(value))
    return (value,) if is_type else None


def _elements(_: Queries, value: Value) -> Values:
    """Return the value itself, since arrays and slices are represented by their elements."""
    return (value,) if value.kind in _INDEXED else ()


def _library_result(method: Value) -> Iterable[Value] | None:
    """Return the result of a library method: an element of its receiver, or all elements."""
    owner, _, name = method.name.rpartition(".")
    if not owner.startswith("std."):
        return None
    is_collection = name.startswith("init") or name in _SAME
    return [external_object(owner, method.resolution, method.held)] if is_collection else method.held[-1:]


RULES = Rules(
    "zig",
    find=_MODULES.find,
    has_implicit_members=True,
    has_class_scope=False,
    infers_fields=True,
    has_file_types=True,
    calls_classes=False,
    function_types=frozenset({"type", "anytype"}),
    builtins=frozenset(_BUILTINS.split()),
    hooks=Hooks(
        this=_this,
        fallback=_fallback,
        function_member=_function_member,
        result=_result,
        library_result=_library_result,
        element_types=_element_types,
        elements=_elements,
    ),
)
