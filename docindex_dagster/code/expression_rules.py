"""How each type of node is read into the notation of `expressions`: one rule a sort of nodes.

Rules take the node, the shapes of its language and how deep it stands; before these, what a language says of the sort.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING

from docindex_dagster.code.expressions import LONGEST, UNKNOWN, Opened, Read, Rule, Shapes, part_of, read, text_of
from docindex_dagster.code.types import canonical_type

if TYPE_CHECKING:
    from tree_sitter import Node

_MOST = 12  # elements of a collection


def of_file(shapes: Shapes) -> Shapes:
    """Shapes with their rules, to read one file with."""
    return replace(shapes, rules=_rules(shapes), leaves=_leaves(shapes), opened=Opened())


@cache
def _rules(shapes: Shapes) -> dict[str, Rule]:
    """How each type of node is read; where two of the groups know one, the later in this list does."""
    groups: list[Mapping[str, Rule]] = [
        {kind: partial(_always, f"#{name}") for kind, name in shapes.literals.items()},
        {kind: partial(_collection, name) for kind, name in shapes.collections.items()},
        {kind: partial(_composite, *names) for kind, names in shapes.composites.items()},
        dict.fromkeys(shapes.blocks, _block),
        dict.fromkeys(shapes.listing, _macro),
        {kind: partial(_branches, *names) for kind, names in shapes.branches.items()},
        {kind: partial(_cast, name) for kind, name in shapes.casts.items()},
        {kind: partial(_one_of, names) for kind, names in shapes.either.items()},
        {kind: partial(_through, name) for kind, name in shapes.through.items()},
        dict.fromkeys(shapes.sequences, _last),
    ]
    rules = {kind: rule for group in groups for kind, rule in group.items()}
    rules |= {kind: partial(_received, mentioned, rules.get(kind)) for kind, mentioned in shapes.received.items()}
    groups = [
        {kind: partial(_item, name) for kind, name in shapes.items.items()},
        {kind: partial(_made, name) for kind, name in shapes.new.items()},
        {kind: partial(_call, name) for kind, name in shapes.calls.items()},
        {kind: partial(_method, *names) for kind, names in shapes.methods.items()},
        {kind: partial(member, *names) for kind, names in shapes.members.items()},
        {kind: partial(_always, word) for kind, word in shapes.words.items()},
        dict.fromkeys(shapes.names - shapes.bare, _name),
        dict.fromkeys(shapes.names & shapes.bare, _bare_name),
        dict.fromkeys(shapes.attributes, _attribute),
    ]
    rules |= {kind: rule for group in groups for kind, rule in group.items()}
    rules |= {kind: partial(_special, read, rules.get(kind)) for kind, read in shapes.special.items()}
    rules |= {kind: partial(_by_reader, read) for kind, read in shapes.readers.items()}
    if not shapes.special:
        return rules
    leaves = _leaves(shapes)
    return {kind: rule if kind in leaves else partial(_once, rule) for kind, rule in rules.items()}


@cache
def _leaves(shapes: Shapes) -> frozenset[str]:
    leaves = shapes.names | shapes.literals.keys() | shapes.words.keys() | shapes.attributes
    return leaves - shapes.special.keys() - shapes.readers.keys()


def _once(rule: Rule, node: "Node", shapes: Shapes, depth: int) -> str:
    """What a rule gives; a part that others have read is not read again."""
    opened = shapes.opened
    before = opened.depth
    if before == 0 == depth:
        opened.known.clear()
    known = opened.known.get(node.id)
    if known is None:
        opened.depth = depth + 1
        try:
            known = opened.known[node.id] = rule(node, shapes, depth)
        finally:
            opened.depth = before
    return known


def _by_reader(reader: "Callable[[Node, Read], str]", node: "Node", shapes: Shapes, depth: int) -> str:
    return reader(node, lambda part: read(part, shapes, depth + 1))


def _special(
    first: "Callable[[Node, Shapes], str]", rule: Rule | None, node: "Node", shapes: Shapes, depth: int
) -> str:
    return first(node, shapes) or (rule(node, shapes, depth) if rule is not None else UNKNOWN)


def _always(text: str, *_: object) -> str:
    return text


def _attribute(node: "Node", *_: object) -> str:
    return f"this.%{text_of(node).lstrip('@')}"


def _name(node: "Node", shapes: Shapes, _: int) -> str:
    name = text_of(node)
    return shapes.words.get(name) or name


def _bare_name(node: "Node", shapes: Shapes, _: int) -> str:
    name = text_of(node)
    return shapes.words.get(name) or f"{name}'"


def _call(name: str, node: "Node", shapes: Shapes, depth: int) -> str:
    called = _part(node, name, shapes, depth)
    if called in shapes.modules and (module := _module(node)):
        return module
    if called in shapes.elements:
        return f"{{{_copied(node, shapes, depth)}[]}}"
    if called in shapes.collecting:
        return _collected(node, shapes)
    return _called(node, f"{called}{_item_mark(node, shapes)}", shapes, depth)


def _item(name: str, node: "Node", shapes: Shapes, depth: int) -> str:
    owner = _part(node, name, shapes, depth)
    key = _key(node, shapes)
    return f"{owner}.{key}" if key else f"{_whole(owner)}[]"


def _received(mentioned: tuple[str, str], rule: Rule | None, node: "Node", shapes: Shapes, depth: int) -> str:
    sign, name = mentioned
    if text_of(node).startswith(sign):
        return f"{_part(node, name, shapes, depth)}[]"
    return rule(node, shapes, depth) if rule is not None else UNKNOWN


def _last(node: "Node", shapes: Shapes, depth: int) -> str:
    parts = [child for child in node.named_children if not child.is_extra]
    return read(parts[-1], shapes, depth + 1) if parts else UNKNOWN


def _through(name: str, node: "Node", shapes: Shapes, depth: int) -> str:
    return read(part_of(node, name), shapes, depth + 1)


def _one_of(names: tuple[str, ...], node: "Node", shapes: Shapes, depth: int) -> str:
    return _either(*(_part(node, name, shapes, depth) for name in names))


def _cast(name: str, node: "Node", *_: object) -> str:
    return f":{canonical_type(text_of(part_of(node, name)))}"


def _branches(cases: str, name: str, node: "Node", shapes: Shapes, depth: int) -> str:
    body = part_of(node, cases)
    arms = body.named_children[:_MOST] if body is not None else []
    return _either(*(_part(arm, name, shapes, depth) for arm in arms if not arm.is_extra))


def _macro(node: "Node", shapes: Shapes, _: int) -> str:
    return _listed(text_of(node), shapes)


def _block(node: "Node", shapes: Shapes, depth: int) -> str:
    only = node.named_children[0] if node.named_child_count == 1 else None
    return read(only, shapes, depth + 1)


def _method(owner: str, name: str, node: "Node", shapes: Shapes, depth: int) -> str:
    """A call that names object and method itself; of `send(:go)` the method that it names."""
    called, successor = named_method(owner, name, node, shapes, depth)
    if called in shapes.collecting:
        return _collected(node, shapes)
    return _called(node, called, shapes, depth) if successor == "()" else f"{called}{successor}"


def named_method(owner: str, name: str, node: "Node", shapes: Shapes, depth: int) -> tuple[str, str]:
    """What is named by a call that names object and method itself, and what that does with it."""
    method = node.child_by_field_name(name)
    if method is None:
        return f"{_part(node, owner, shapes, depth)}.call", "()"
    successor = shapes.named.get(text_of(method)) if shapes.named else None
    if successor is not None:
        arguments = node.child_by_field_name("arguments")
        first = arguments.named_children[0] if arguments is not None and arguments.named_children else None
        if first is not None and (called := _key_text(first)):
            within = node.child_by_field_name(owner)
            before = f"{read(within, shapes, depth + 1)}." if within is not None else ""
            return f"{before}{called}", successor
    return member(owner, name, node, shapes, depth), "()"


def _called(node: "Node", called: str, shapes: Shapes, depth: int) -> str:
    """What a call gives; of some functions that is what they are given."""
    if called in shapes.copies:
        return _copied(node, shapes, depth)
    if called in shapes.holding:
        held = _copied(node, shapes, depth)
        return UNKNOWN if held == UNKNOWN or held[0] == "#" else f"{{{held}}}"
    if called not in shapes.typed and called not in shapes.joined:
        return _mapped(node, called, shapes, depth) if shapes.lambdas else f"{called}()"
    arguments = node.child_by_field_name("arguments")
    first, *others = arguments.named_children if arguments is not None and arguments.named_children else [None]
    if called in shapes.typed:
        return f":{canonical_type(text_of(first))}"
    return _either(read(first, shapes, depth + 1), _elements(read(other, shapes, depth + 1) for other in others))


def _mapped(node: "Node", called: str, shapes: Shapes, depth: int) -> str:
    """A call, or what the function gives that it is given, where it maps."""
    owner, _, method = called.rpartition(".")
    if not owner or method not in _MAPPING:
        return f"{called}()"
    arguments = node.child_by_field_name("arguments")
    given = [child for child in arguments.named_children if not child.is_extra] if arguments is not None else []
    if _MAPPING[method] == _FOLDS:
        start = read(given[-1], shapes, depth + 1) if given and given[-1].type in shapes.values else UNKNOWN
        return f"({called}()|{start})" if start != UNKNOWN else f"{called}()"
    mapped = _result_of(node.child_by_field_name("block") or next(iter(given), None), shapes, depth)
    return f"({called}()|{_MAPPING[method].format(mapped)})" if mapped != UNKNOWN else f"{called}()"


def _result_of(function: "Node | None", shapes: Shapes, depth: int) -> str:
    """What a function without a name gives, where that is one expression; what one gives that is named."""
    if function is None:
        return UNKNOWN
    if function.type in shapes.names:
        return f"{text_of(function)}()"
    if function.type not in shapes.lambdas:
        return UNKNOWN
    result = read(function.child_by_field_name("body"), shapes, depth + 1)
    return UNKNOWN if result.startswith("#") else result


def _module(node: "Node") -> str:
    """The module that a call gives, where its name is a literal."""
    arguments = node.child_by_field_name("arguments")
    children = arguments.named_children if arguments is not None else []
    name = text_of(children[0]) if len(children) == 1 else ""
    return f'"{name[1:-1]}"' if _LITERAL_MODULE.fullmatch(name) else ""


def _key(node: "Node", shapes: Shapes) -> str:
    """The name by which an element is looked up, where it is a literal; of one that is written with it, this one."""
    label = node.child_by_field_name(shapes.labels[node.type]) if node.type in shapes.labels else None
    if label is not None and label.type in shapes.names:
        return text_of(label)
    name = shapes.keys.get(node.type) if shapes.keys else None
    return _key_text(node.child_by_field_name(name)) if name else ""


def _composite(declared: str, elements: str, node: "Node", shapes: Shapes, depth: int) -> str:
    """Something of a type that is written with what it holds, which is recorded where it is a collection."""
    kind = canonical_type(text_of(part_of(node, declared)))
    body = part_of(node, elements)
    if body is None or not kind.startswith(("Array<", "map<")):
        return f":{kind}" if kind else UNKNOWN
    children = (child.child_by_field_name("value") or child for child in body.named_children[:_MOST])
    return _either(f":{kind}", _elements(read(child, shapes, depth + 1) for child in children))


def _copied(node: "Node", shapes: Shapes, depth: int) -> str:
    """What the last argument is."""
    arguments = node.child_by_field_name("arguments")
    children = arguments.named_children if arguments is not None else []
    return read(children[-1], shapes, depth + 1) if children else "{}"


def _collected(node: "Node", shapes: Shapes) -> str:
    """A collection of all arguments."""
    listed = node.child_by_field_name("arguments") or node.named_children[-1]
    inner = next((child for child in listed.named_children if child.type == "value_arguments"), listed)
    return _collection("", inner, shapes, 0)


def _made(name: str, node: "Node", shapes: Shapes, depth: int) -> str:
    """A new object; of a generic type with its type arguments."""
    made = part_of(node, name)
    written = text_of(made)
    if "<" in written and "<>" not in written and (declared := canonical_type(written)):
        return f":{declared}"
    return f"{_plain(read(made, shapes, depth + 1))}@()"


def _part(node: "Node", name: str, shapes: Shapes, depth: int) -> str:
    return read(part_of(node, name), shapes, depth + 1)


def member(owner: str, name: str, node: "Node", shapes: Shapes, depth: int) -> str:
    """What a node names of its object."""
    member = part_of(node, name)
    written = text_of(member)
    if member is None or not written:
        return UNKNOWN
    within = part_of(node, owner)
    if within is None or within.id == member.id:
        return written  # a method called without its object
    before = read(within, shapes, depth + 1)
    return f"{_whole(before)}.{_plain(written.lstrip('.?!:'))}"


def _collection(name: str, node: "Node", shapes: Shapes, depth: int) -> str:
    parts: dict[str, None] = {}
    for child in node.named_children[:_MOST]:
        value = child.child_by_field_name(name) if name else None
        part = read(value or child, shapes, depth + 1)
        key = _key_text(child) if child.type in shapes.names else _key(child, shapes)
        if child.type in shapes.written or (value is not None and value.type in shapes.written):
            key = _key_text(child.child_by_field_name("name")) or key
            part = f"&{key}" if key else UNKNOWN
        if child.type in shapes.spreads and not name:
            part = f"{part}[]"
        if part != UNKNOWN and not part.startswith(("#", "?")):
            parts[f"{key}={part}" if key and name else part] = None
    return f"{{{','.join(parts)}}}"


# In `vec![first(…), second]`: the first element, and those that are names.
_FIRST_LISTED = re.compile(r"(\w+)!\s*[\[(]\s*&?((?:\w+::)*[^\W\d]\w*)\s*([({])")
_NAME_LISTED = re.compile(r"(?<=[\[(,])\s*&?((?:\w+::)*[^\W\d]\w*)\s*(?=[,\])])")


def _listed(macro: str, shapes: Shapes) -> str:
    """The collection that a macro gives, whose arguments the grammar leaves unread."""
    if macro.partition("!")[0] not in shapes.listing.values():
        return UNKNOWN
    if first := _FIRST_LISTED.match(macro):
        made = first[2].replace("::", ".")
        return (
            UNKNOWN
            if made in shapes.copies | shapes.holding
            else f"{{:{made}}}"
            if first[3] == "{"
            else f"{{{made}()}}"
        )
    return _elements(name.replace("::", ".") for name in _NAME_LISTED.findall(macro[:LONGEST]))


def _elements(values: Iterable[str]) -> str:
    """A collection of what is known."""
    known = [value for value in dict.fromkeys(values) if value != UNKNOWN and value[0] not in "#:"]
    return f"{{{','.join(known)}}}" if known else UNKNOWN


def _either(*values: str) -> str:
    known = [value for value in dict.fromkeys(values) if value != UNKNOWN]
    return f"({'|'.join(known)})" if len(known) > 1 else next(iter(known), UNKNOWN)


def _item_mark(call: "Node | None", shapes: Shapes) -> str:
    """The mark of a called item, where the grammar does not distinguish it from a function with type arguments."""
    field_name = shapes.indexed.get(call.type) if call is not None else None
    return "[]" if call is not None and field_name and call.child_by_field_name(field_name) is not None else ""


def _key_text(node: "Node | None") -> str:
    """The name that a node is, as a literal or as it stands."""
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
_FOLDS = "fold"
# Methods that make something of each element, or one of all.
_MAPPING = {
    **dict.fromkeys(("map", "collect", "filter_map"), "{{{}}}"),
    **dict.fromkeys(("flatMap", "flat_map", "then"), "{}"),
    **dict.fromkeys(("reduce", "reduceRight", "inject", "each_with_object"), _FOLDS),
}
_KEY = re.compile(r"#?[^\W\d]\w*[?!]?")
_LITERAL_MODULE = re.compile(r"([\"'`])[^\"'`$\n]+\1")


def _whole(written: str) -> str:
    """In brackets where what follows would be read as a part of it."""
    return f"({written})" if written.startswith(":") else written


def _plain(name: str) -> str:
    """A name without type arguments."""
    return name.partition("<")[0]
