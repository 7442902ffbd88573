"""Zig: what its grammar calls expressions and statements.

A chain such as `list.items[0].?.run()` is one node with its parts in a row, read from its first part on. Functions
whose names begin with a capital letter give types; pointers, optionals and slices are taken for what they hold.
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
_OWN = {"@import": module, **dict.fromkeys(("@ptrCast", "@alignCast", "@constCast", "@volatileCast"), last)}
_MOST_PARTS = 60  # of a chain, which is read again for each call in it
_FUNCTION = Instance(TypeRef("func"))
_BY_KEY = ("Map", "MapUnmanaged", "EnumArray")
_OF_ANY = frozenset({"else", "value_ptr", "value"})  # what a switch has left, and the entries of the library's maps
_INDEXED = frozenset({"class", "object", "module"})
_WHOLE = frozenset({"clone", "iterator", "keyIterator", "valueIterator", "toOwnedSlice", "items", "slice"})


def _chain(node: Node, read: Read) -> Expression:
    """An expression with all that is behind it; a declared type."""
    declared = _type_with(node)
    if declared is not None and text_of(declared).startswith("fn"):
        return _FUNCTION
    if declared is not None and (found := _declared(text_of(node))) is not UNKNOWN:
        return found
    return _up_to(node, None, read)


def _callee(node: Node, read: Read) -> Expression:
    """What is called with some arguments; nothing of the language's own functions."""
    around = node.parent
    if around is None or around.type == "SuffixExpr":
        called = _up_to(around, node, read)
    else:
        called = _member(_up_to(around.parent, around, read), around.child_by_field_name("function_call"))
    return UNKNOWN if _is_own(called) else called


def _up_to(chain: Node | None, end: Node | None, read: Read) -> Expression:
    """The parts of a chain, or those before one of them."""
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


def _with(found: Expression, part: Node, read: Read) -> Expression:  # noqa: PLR0911 one a part
    """A chain with one more part."""
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
    return UNKNOWN if found is UNKNOWN or _is_own(found) else Attribute(found, text_of(name))


def _is_own(found: Expression) -> bool:
    return isinstance(found, Name) and found.text.startswith("@")


def _called(found: Expression, arguments: Node, read: Read) -> Expression:
    """What a call gives; of functions whose names begin with a capital letter, something of a type."""
    written = path_of(found)
    if found is UNKNOWN or _is_own(found):
        return _of_own(written, arguments.named_children, read)
    is_type = written.rpartition(".")[2][:1].isupper()
    made = _declared(f"{written}{text_of(arguments)}") if is_type else UNKNOWN
    return Call(found) if made is UNKNOWN else made


def _of_own(function: str, given: list[Node], read: Read) -> Expression:
    """What a function of the language's own gives: a module, the type around, or what is cast."""
    if function == "@This":
        return THIS
    if function == "@as" and given:
        return _declared(text_of(given[0]))
    gives = _OWN.get(function)
    return (gives(given, read) or UNKNOWN) if gives is not None else UNKNOWN


def _type_with(chain: Node) -> Node | None:
    """The declared type that a chain is, or ends; None where it stands elsewhere."""
    node = chain
    while node.parent is not None and node.parent.type == "ErrorUnionExpr":
        node = node.parent
    if node.parent is not None and node.parent.type == "ParamType":
        return node
    before = node.prev_sibling if node.parent is not None and node.parent.type in _DECLARED else None
    return node if before is not None and before.type in {":", "PrefixTypeOp"} else None


def _declared(written: str) -> Expression:
    """Something of a declared type, whose arguments stand in round brackets."""
    return UNKNOWN if "@" in written else something(written.replace("(", "<").replace(")", ">"))


def _expected(chain: Node) -> Expression:
    """What `.name` is a member of: the type of the variable, or of what the function gives."""
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
    beside=frozenset({"InitList", "PrefixTypeOp"}),
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
    """The type around a place: a struct, what a function gives that has methods, or the file."""
    for around in unit.around(scope):
        if is_class(around):
            return [Value("object", unit.path, around.id)]
        if around.kind == "function" and _is_type_function(unit, around):
            return [Value("function", unit.path, around.id)]
    return [Value("module", unit.path, "")]


def _held(name: str, arguments: Arguments) -> Arguments:
    """The argument of a generic type that says what it holds."""
    return arguments[1:2] if name.endswith(_BY_KEY) and len(arguments) > 1 else arguments[:1]


def _of_function(q: Queries, value: Value, name: str) -> Sequence[Value]:
    """What the type has under a name that a function gives: it is written in it, or in another one that this calls."""
    unit, definition = q.unit(value.path), q.definition(value)
    inside = unit.children_of(definition.qualified, name)
    found = [member for one in inside for member in q.as_member(value, unit, one)]
    found += q.each(unit, definition.id, unit.bindings_of(definition.id, name)[:MOST_VALUES])
    if found:
        return found_by(found, Resolution.RECEIVER)
    given = q.each(unit, definition.id, unit.returns.get(definition.id, ()))
    return q.all_members([one for one in given if not one.is_same(value)], name)


def _missing(q: Queries, value: Value, name: str, found: Sequence[Value]) -> Sequence[Value]:
    """What a type means that is none of its names: of a union all that it may be, of an entry its value."""
    if found or name not in _OF_ANY:
        return ()
    if name != "else":
        return [value]
    unit = q.unit(value.path)
    fields = [one for some in unit.bindings.get(value.name, {}).values() for one in some]  # of a union
    return q.each(unit, value.name, [one for one in fields if isinstance(one, Instance)][:MOST_VALUES])


def _is_type_function(unit: Unit, function: Definition) -> bool:
    """Whether a function gives a type, which is written in it."""
    inside = unit.children.get(function.qualified, {})
    return any(one.kind == "method" for some in inside.values() for one in some)


def _result(q: Queries, _: Unit, value: Value) -> Values | None:
    """A function that gives a type stands for it."""
    is_type = value.kind == "function" and _is_type_function(q.unit(value.path), q.definition(value))
    return (value,) if is_type else None


def _elements(_: Queries, value: Value) -> Values:
    """An array or slice is followed as what it holds."""
    return (value,) if value.kind in _INDEXED else ()


def _library_result(method: Value) -> Iterable[Value] | None:
    """What a method of the library gives: one of what its object holds, or all."""
    owner, _, name = method.name.rpartition(".")
    if not owner.startswith("std."):
        return None
    is_whole = name.startswith("init") or name in _WHOLE
    return [external_object(owner, method.resolution, method.held)] if is_whole else method.held[-1:]


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
        missing=_missing,
        of_function=_of_function,
        result=_result,
        library_result=_library_result,
        held=_held,
        elements=_elements,
    ),
)
