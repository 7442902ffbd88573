"""Rules that convert nodes into expressions, one per kind of node in `Expressions`.

A rule takes the fields that the language assigns to the node type, then the node, the reader of the file and the depth.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache, partial

from docindex_dagster.callgraph.extract.expressions import (
    Expressions,
    Node,
    Read,
    Reader,
    Rule,
    part_of,
    parts_of,
    text_of,
)
from docindex_dagster.callgraph.extract.library import argument_nodes, instance_of, listed
from docindex_dagster.callgraph.extract.types import declared_type
from docindex_dagster.callgraph.ir import (
    THIS,
    UNKNOWN,
    Attribute,
    Call,
    Collection,
    Element,
    Expression,
    Function,
    Instance,
    Literal,
    Name,
    NameOrCall,
    New,
    Record,
    TypeRef,
    either,
    head,
    is_known,
    path,
    path_of,
)

_MOST = 12  # elements of a collection
_LONGEST_MACRO = 200  # characters


def reader_of(syntax: Expressions) -> Reader:
    """Return a reader for the expressions of a file."""
    return Reader(syntax, _rules(syntax), _constants(syntax), _leaves(syntax))


@cache
def _rules(syntax: Expressions) -> dict[str, Rule]:
    """Return the rules by node type."""
    rules: dict[str, Rule] = {}
    for name, rule in _RULES.items():
        node_types = getattr(syntax, name)
        for kind in node_types:
            fields = node_types[kind] if isinstance(node_types, Mapping) else ()
            rules[kind] = partial(rule, *([fields] if isinstance(fields, str) else fields))
    rules |= {kind: partial(_special, read, rules.get(kind)) for kind, read in syntax.special.items()}
    return rules | {kind: partial(_by_reader, read) for kind, read in syntax.readers.items()}


@cache
def _constants(syntax: Expressions) -> dict[str, Expression]:
    literals = {kind: Literal(name) for kind, name in syntax.literals.items()}
    return literals | {kind: path(word) for kind, word in syntax.words.items()}


@cache
def _leaves(syntax: Expressions) -> frozenset[str]:
    return (syntax.names | syntax.attributes).difference(syntax.special, syntax.readers)


def _by_reader(read: Callable[[Node, Read], Expression], node: Node, reader: Reader, depth: int) -> Expression:
    return read(node, lambda part: reader.part(part, depth + 1))


def _special(
    first: Callable[[Node, Reader], Expression | None], rule: Rule | None, node: Node, reader: Reader, depth: int
) -> Expression:
    """Apply the language's own rule, or else the general one; cached, since both read the same children."""
    known = reader.known.get(node.id)
    if known is None:
        before, reader.depth = reader.depth, depth + 1
        try:
            known = first(node, reader) or (rule(node, reader, depth) if rule is not None else UNKNOWN)
        finally:
            reader.depth = before
        reader.known[node.id] = known
    return known


def _attribute(node: Node, *_: object) -> Expression:
    return Attribute(THIS, f"%{text_of(node).lstrip('@')}")


def _name(node: Node, reader: Reader, _: int) -> Expression:
    name = text_of(node)
    if word := reader.syntax.words.get(name):
        return path(word)
    if node.type in reader.syntax.bare:
        return NameOrCall(name)
    return path(name) if "." in name else Name(name) if name else UNKNOWN


def _call(name: str, node: Node, reader: Reader, depth: int) -> Expression:
    called = _part(node, name, reader, depth)
    return _called(node, Element(called) if _is_indexed(node, reader.syntax) else called, reader, depth)


def _item(name: str, node: Node, reader: Reader, depth: int) -> Expression:
    owner = _part(node, name, reader, depth)
    key = _key(node, reader)
    return Attribute(owner, key) if key else Element(owner)


def _last(node: Node, reader: Reader, depth: int) -> Expression:
    parts = parts_of(node)
    return reader.part(parts[-1], depth + 1) if parts else UNKNOWN


def _through(name: str, node: Node, reader: Reader, depth: int) -> Expression:
    return reader.part(part_of(node, name), depth + 1)


def _one_of(first: str, second: str, node: Node, reader: Reader, depth: int) -> Expression:
    return either((_part(node, first, reader, depth), _part(node, second, reader, depth)))


def _cast(name: str, node: Node, *_: object) -> Expression:
    return instance_of(part_of(node, name))


def _branches(cases: str, name: str, node: Node, reader: Reader, depth: int) -> Expression:
    body = part_of(node, cases)
    arms = body.named_children[:_MOST] if body is not None else []
    return either(_part(arm, name, reader, depth) for arm in arms if not arm.is_extra)


def _block(node: Node, reader: Reader, depth: int) -> Expression:
    only = node.named_children[0] if node.named_child_count == 1 else None
    return reader.part(only, depth + 1)


def _method(owner: str, name: str, node: Node, reader: Reader, depth: int) -> Expression:
    """Read a call with fields for object and method; `send(:go)` is a call of `go`."""
    called, is_run = named_method(owner, name, node, reader, depth)
    return _called(node, called, reader, depth) if is_run else called


def named_method(owner: str, name: str, node: Node, reader: Reader, depth: int) -> tuple[Expression, bool]:
    """Return the method named by a call with fields for object and method, and whether the call runs it."""
    named = reader.syntax.named
    method = node.child_by_field_name(name)
    if method is None:
        return Attribute(_part(node, owner, reader, depth), "call"), True
    if named and (word := text_of(method)) in named:
        arguments = node.child_by_field_name("arguments")
        first = arguments.named_children[0] if arguments is not None and arguments.named_children else None
        if called := _key_text(first):
            within = node.child_by_field_name(owner)
            found = Name(called) if within is None else Attribute(reader.part(within, depth + 1), called)
            return found, named[word]
    return member(owner, name, node, reader, depth), True


def _called(node: Node, called: Expression, reader: Reader, depth: int) -> Expression:
    """Return the result of a call; for some library functions, it is derived from the arguments."""
    syntax = reader.syntax
    rule = syntax.library.get(path_of(called)) if syntax.library else None
    known = rule(argument_nodes(node, syntax), lambda part: reader.part(part, depth + 1)) if rule is not None else None
    return known or (_mapped(node, called, reader, depth) if syntax.lambdas else Call(called))


def _mapped(node: Node, called: Expression, reader: Reader, depth: int) -> Expression:
    """Return a call; for mapping methods, also the result of their callback."""
    if not isinstance(called, Attribute) or called.name not in _COMBINING:
        return Call(called)
    arguments = parts_of(node.child_by_field_name("arguments"))
    if called.name in _FOLDING:
        has_start = bool(arguments) and arguments[-1].type in reader.syntax.values
        return either((Call(called), reader.part(arguments[-1], depth + 1) if has_start else UNKNOWN))
    mapped = _result_of(node.child_by_field_name("block") or next(iter(arguments), None), reader, depth)
    if mapped is UNKNOWN:
        return Call(called)
    return either((Call(called), Collection((mapped,)) if called.name in _MAPPING else mapped))


def _result_of(function: Node | None, reader: Reader, depth: int) -> Expression:
    """Return the result of a named function, or of an anonymous one whose body is a single expression."""
    if function is None:
        return UNKNOWN
    if function.type in reader.syntax.names:
        return Call(Name(text_of(function)))
    if function.type not in reader.syntax.lambdas:
        return UNKNOWN
    result = reader.part(function.child_by_field_name("body"), depth + 1)
    return UNKNOWN if isinstance(head(result), Literal) else result


def _key(node: Node, reader: Reader) -> str:
    """Return the literal key of a subscript, or the label of an element; "" for other keys."""
    labels = reader.syntax.labels
    label = node.child_by_field_name(labels[node.type]) if node.type in labels else None
    if label is not None and label.type in reader.syntax.names:
        return text_of(label)
    keys = reader.syntax.keys
    name = keys.get(node.type) if keys else None
    return _key_text(node.child_by_field_name(name)) if name else ""


def _composite(declared: str, elements: str, node: Node, reader: Reader, depth: int) -> Expression:
    """Return an instance of a composite literal's type; for collections, also with its elements."""
    kind = declared_type(text_of(part_of(node, declared)))
    body = part_of(node, elements)
    if kind is None:
        return UNKNOWN
    if body is None or kind.name not in {"Array", "map"} or not kind.arguments:
        return Instance(kind)
    children = (child.child_by_field_name("value") or child for child in body.named_children[:_MOST])
    return either((Instance(kind), listed(reader.part(child, depth + 1) for child in children)))


def _new(name: str, node: Node, reader: Reader, depth: int) -> Expression:
    """Return a new object; for a generic type, with its type arguments."""
    cls = part_of(node, name)
    written = text_of(cls)
    if "<" in written and "<>" not in written and (declared := declared_type(written)):
        return Instance(declared)
    return New(_plain(reader.part(cls, depth + 1)))


def _part(node: Node, name: str, reader: Reader, depth: int) -> Expression:
    return reader.part(part_of(node, name), depth + 1)


def member(owner: str, name: str, node: Node, reader: Reader, depth: int) -> Expression:
    """Return the member that a node accesses."""
    named = part_of(node, name)
    written = text_of(named)
    if named is None or not written:
        return UNKNOWN
    within = part_of(node, owner)
    if within is None or within.id == named.id:
        return path(written)  # a method called without a receiver
    before = reader.part(within, depth + 1)
    plain = written.lstrip(".?!:~")
    return Attribute(before, plain.partition("<")[0] or plain) if plain else UNKNOWN  # empty for an operator


def _collection(name: str, node: Node, reader: Reader, depth: int) -> Expression:
    parts: dict[tuple[str, Expression], None] = {}
    syntax = reader.syntax
    for child in node.named_children[:_MOST]:
        value = child.child_by_field_name(name) if name else None
        part = reader.part(value or child, depth + 1)
        key = _key_text(child) if child.type in syntax.names else _key(child, reader)
        if child.type in syntax.written or (value is not None and value.type in syntax.written):
            key = _key_text(child.child_by_field_name("name")) or key
            part = Function(key) if key else UNKNOWN
        if child.type in syntax.spreads and not name:
            part = Element(part)
        if is_known(part):
            parts[key if name else "", part] = None
    if any(key for key, _ in parts):
        return Record(tuple(parts))
    return Collection(tuple(part for _, part in parts))


# In `vec![first(…), second]`: the first element, and elements that are plain names.
_FIRST_LISTED = re.compile(r"(\w+)!\s*[\[(]\s*&?((?:\w+::)*[^\W\d]\w*)\s*([({])")
_NAME_LISTED = re.compile(r"(?<=[\[(,])\s*&?((?:\w+::)*[^\W\d]\w*)\s*(?=[,\])])")


def _listed(name: str, node: Node, reader: Reader, _: int) -> Expression:
    """Return the collection that a macro creates from arguments that the grammar does not parse."""
    macro = text_of(node)
    if macro.partition("!")[0] != name:
        return UNKNOWN
    if first := _FIRST_LISTED.match(macro):
        cls = first[2].replace("::", ".")
        if cls in reader.syntax.library:
            return UNKNOWN
        return Collection((Instance(TypeRef(cls)) if first[3] == "{" else Call(path(cls)),))
    return listed(path(name.replace("::", ".")) for name in _NAME_LISTED.findall(macro[:_LONGEST_MACRO]))


def _is_indexed(call: Node, syntax: Expressions) -> bool:
    """Return whether a call is a call of an element, which the grammar confuses with explicit type arguments."""
    field_name = syntax.indexed.get(call.type)
    return bool(field_name) and call.child_by_field_name(str(field_name)) is not None


def _key_text(node: Node | None) -> str:
    """Return the name in a literal or name node; "" for any other node."""
    if node is None or node.type not in _KEYS:
        return ""
    text = text_of(node).strip("\"'`: ")
    return text if _KEY.fullmatch(text) else ""


_KEYS = frozenset(
    {
        "string",
        "simple_symbol",
        "hash_key_symbol",
        "property_identifier",
        "private_property_identifier",
        "shorthand_property_identifier",
    }
)
# Methods that map each element, that also flatten the results, and that fold all elements into a single value.
_MAPPING = frozenset({"map", "collect", "filter_map"})
_FLATTENING = frozenset({"flatMap", "flat_map", "then"})
_FOLDING = frozenset({"reduce", "reduceRight", "inject", "each_with_object"})
_COMBINING = _MAPPING | _FLATTENING | _FOLDING
_KEY = re.compile(r"#?[^\W\d]\w*[?!]?")


def _plain(cls: Expression) -> Expression:
    """Remove type arguments from a name."""
    match cls:
        case Name(text):
            return Name(text.partition("<")[0] or text)
        case Attribute(of, name):
            return Attribute(of, name.partition("<")[0] or name)
        case _:
            return cls


_RULES: Mapping[str, Callable[..., Expression]] = {
    "collections": _collection,
    "composites": _composite,
    "blocks": _block,
    "listing": _listed,
    "branches": _branches,
    "casts": _cast,
    "either": _one_of,
    "through": _through,
    "sequences": _last,
    "items": _item,
    "new": _new,
    "calls": _call,
    "methods": _method,
    "members": member,
    "names": _name,
    "attributes": _attribute,
}
"""The rules for each kind of node in `Expressions`; they receive the fields listed there."""
