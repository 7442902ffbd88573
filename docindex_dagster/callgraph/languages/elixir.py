"""Elixir: syntax and rules.

A variable and a function may share a name: `names.(x)` calls the value of the variable, through its member `call`;
`names(x)` calls the function. A module attribute `@names` is the variable `$names`.
"""

from collections.abc import Sequence

from docindex_dagster.callgraph.extract.expressions import (
    Expressions,
    Node,
    Read,
    Reader,
    Syntax,
    part_of,
    parts_of,
    text_of,
)
from docindex_dagster.callgraph.extract.library import first, item, last
from docindex_dagster.callgraph.ir import UNKNOWN, Attribute, Expression, Function, Name
from docindex_dagster.callgraph.nesting import assign_parents
from docindex_dagster.callgraph.resolver.values import Value, functions
from docindex_dagster.callgraph.rules import Hooks, Queries, Rules

_LAST = frozenset({"|>", "=", "||", "&&", "or", "and"})
"""Operators whose value is, or may be, their right operand."""

_ITEM = "Enum.at Enum.find Enum.random Keyword.fetch! Keyword.get List.first Map.fetch! Map.get hd"
_SAME = "Enum.filter Enum.reject Enum.reverse Enum.sort Enum.take Enum.to_list Map.values"
_USING = "__using__"


def _operator(node: Node, read: Read) -> Expression:
    is_last = text_of(node.child_by_field_name("operator")) in _LAST
    return read(node.child_by_field_name("right")) if is_last else UNKNOWN


def _signed(node: Node, read: Read) -> Expression:
    """Return a module attribute or a captured function: `@name`, `&name/1`, `&Module.name/1`."""
    operator, operand = text_of(node.child_by_field_name("operator")), node.child_by_field_name("operand")
    if operand is None or operator not in {"@", "&"}:
        return UNKNOWN
    if operator == "@":
        return Name(f"${text_of(operand.child_by_field_name('target') or operand)}")
    named = operand.child_by_field_name("left")
    if operand.type != "binary_operator" or named is None or b"/" not in (operand.text or b""):
        return UNKNOWN
    return read(named.child_by_field_name("target")) if named.type == "call" else Function(text_of(named))


def _member(node: Node, read: Read) -> Expression:
    """Return the member after a dot; an Erlang module, which is an atom, is treated as a member of `erlang`."""
    owner, name = node.child_by_field_name("left"), text_of(node.child_by_field_name("right"))
    is_atom = owner is not None and owner.type == "atom"
    of = Attribute(Name("erlang"), text_of(owner)[1:]) if is_atom else read(owner)
    return Attribute(of, name or "call")


def _field(node: Node, reader: Reader) -> Expression | None:
    """Return a field access, which parses as a call without parentheses; None for other calls."""
    target = node.child_by_field_name("target")
    owner = target.child_by_field_name("left") if target is not None and target.type == "dot" else None
    is_call = owner is None or owner.type == "alias" or any(one.type == "arguments" for one in node.children)
    return None if is_call else reader.expression(target)


def _delegate(node: Node, reader: Reader) -> Expression | None:
    """Return the target of `defdelegate name(x), to: Module, as: :other`; None for other keywords."""
    options = {
        text_of(pair.child_by_field_name("key")).strip(": "): part_of(pair, "value") for pair in node.named_children
    }
    head = node.prev_named_sibling
    named = head.child_by_field_name("target") or head if head is not None else None
    name = text_of(options.get("as")).lstrip(":") or text_of(named)
    return Attribute(reader.expression(options["to"]), name) if "to" in options and name else None


def _key(node: Node, _: Read) -> Expression:
    return Name(text_of(node).strip(": "))


def _listed(called: Node, listed: Node | None) -> list[Node]:
    """Return the arguments of a call, with a piped value as the first one."""
    around = called.parent
    call = around if called.type != "call" and around is not None and around.type == "call" else called
    pipe = call.parent
    is_piped = pipe is not None and text_of(pipe.child_by_field_name("operator")) == "|>"
    first = pipe.child_by_field_name("left") if pipe is not None and is_piped else None
    return [*([first] if first is not None and first.id != call.id else []), *parts_of(listed)]


_EXPRESSIONS = Expressions(
    names=frozenset({"identifier", "alias"}),
    members={"arguments": ("0", "1")},
    items={"access_call": "target"},
    calls={"call": "target"},
    library={
        **dict.fromkeys(_ITEM.split(), item),
        **dict.fromkeys(_SAME.split(), first),
        **dict.fromkeys(("Application.compile_env", "Application.get_env"), last),
    },
    collections={"list": "", "keywords": "value"},
    casts={"struct": ""},
    through={"pair": "value", "block": "-1", "map": "", "map_content": ""},
    literals={
        "string": "String",
        "integer": "Integer",
        "float": "Float",
        "boolean": "Atom",
        "atom": "Atom",
        "charlist": "List",
        "nil": "nil",
    },
    readers={
        "binary_operator": _operator,
        "unary_operator": _signed,
        "dot": _member,
        "keyword": _key,
    },
    special={"keywords": _delegate, "call": _field},
    listed=_listed,
)

_ANONYMOUS = frozenset({"anonymous_function"})

SYNTAX = Syntax(("elixir",), _EXPRESSIONS, _ANONYMOUS, _ANONYMOUS)

_BUILTINS = """
    Access Agent Application Atom Base Bitwise Calendar Code Date DateTime Duration Enum Enumerable Exception ExUnit
    File Float Function GenEvent GenServer IO Inspect Integer Kernel Keyword List Logger Macro Map MapSet Mix Module
    NaiveDateTime Node Path Port Process Protocol Range Record Regex Registry Stream String StringIO Supervisor System
    Task Time Tuple URI Version ArgumentError KeyError RuntimeError erlang
    abs apply assert assert_raise binary_part binding bit_size byte_size ceil describe destructure div dbg elem exit
    flunk floor get_in hd inspect is_atom is_binary is_bitstring is_boolean is_exception is_float is_function is_integer
    is_list is_map is_map_key is_nil is_number is_pid is_port is_reference is_struct is_tuple length macro_exported?
    make_ref map_size match? max min node not pop_in put_elem put_in raise refute rem reraise round self send setup
    setup_all sigil_w spawn spawn_link spawn_monitor start_supervised start_supervised! struct struct! tap test then
    throw tl to_charlist to_string trunc tuple_size update_in use assert_receive assert_received refute_receive
    function_exported? alias! var!
"""


def _is_clause(q: Queries, value: Value, target: Value) -> bool:
    """Return whether two functions are clauses of the same function: same name and arity."""
    is_named = value.path == target.path and value.name.partition("~")[0] == target.name.partition("~")[0]
    return is_named and len(q.parameters(value)) == len(q.parameters(target))


def _runs(q: Queries, value: Value) -> Sequence[Value] | None:
    """Return `__using__` of a module, which `use` runs."""
    if value.kind != "class":
        return None
    return functions(q.member(value, _USING))


def _fallback(q: Queries, value: Value, name: str, found: Sequence[Value]) -> Sequence[Value]:
    """Return a nested module, whose name starts with that of the outer module."""
    if found or value.kind != "class":
        return ()
    unit = q.unit(value.path)
    inside = q.resolve_full_name(unit, f"{unit.full_name(q.definition(value).qualified)}.{name}")
    return [one for one in inside if one.kind != "function"]


RULES = Rules(
    "elixir",
    sharing="namespace",
    has_implicit_members=True,
    has_open_classes=True,
    has_namespaces=True,
    has_local_imports=True,
    has_path_imports=True,
    has_function_names=True,
    has_protocols=True,
    has_method_super=True,
    infers_fields=True,
    has_untyped_fields=True,
    inherits=False,
    calls_classes=False,
    has_class_scope=False,
    call_methods=frozenset({"call"}),
    runs=(_USING,),
    extension=_USING,
    self_names=frozenset({"__MODULE__"}),
    builtins=frozenset(_BUILTINS.split()),
    hooks=Hooks(prepare=assign_parents, is_clause=_is_clause, fallback=_fallback, runs=_runs),
)
