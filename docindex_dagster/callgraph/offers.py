"""What a file has to offer to others, in tables: by the names under which it is looked for.

What is found in a table of a file depends on that file alone.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeVar

from docindex_dagster.callgraph.fingerprints import fingerprint, joined, key_of, text_of
from docindex_dagster.callgraph.ir import (
    Argument,
    Assignment,
    Attribute,
    Call,
    CallSite,
    Decorator,
    Definition,
    Element,
    Expression,
    Fill,
    Function,
    Implicit,
    Instance,
    Name,
    NameOrCall,
    New,
)
from docindex_dagster.callgraph.languages.lua_tables import bases_named
from docindex_dagster.callgraph.nesting import CLASSES
from docindex_dagster.callgraph.rules import Rules
from docindex_dagster.callgraph.units import Unit, grouped

_Found = TypeVar("_Found")
# What a file calls decides nothing of what its names mean, but for what it gives to functions.
_UNSEEN = frozenset({"definitions", "calls", "decorators", "fills", "namespace"})


class Taker(NamedTuple):
    """A call that is given something by its name, at a position."""

    call: CallSite
    at: int


@dataclass(frozen=True, eq=False)
class Offers:
    """The tables of a file."""

    unit: Unit

    @cached_property
    def named(self) -> Mapping[str, Sequence[Definition]]:
        """Definitions by their names."""
        return grouped((one.name, one) for one in self.unit.definitions.values())

    @cached_property
    def full(self) -> Mapping[str, Sequence[Definition]]:
        """Definitions by their full names."""
        return grouped((full_name(self.unit, one.qualified), one) for one in self.unit.definitions.values())

    @cached_property
    def extensions(self) -> Mapping[str, Sequence[Definition]]:
        """Functions that are members of another type, by their names."""
        definitions = self.unit.definitions
        known = [definitions[function] for function in self.unit.receivers if function in definitions]
        return grouped((one.name, one) for one in known)

    @cached_property
    def callers(self) -> Mapping[str, Sequence[CallSite | Decorator]]:
        """Calls and decorators by the last name in them, and by that which it has where it is imported from."""
        rules = self.unit.rules
        called: list[tuple[CallSite | Decorator, str]] = [(one, _called(one.callee, rules)) for one in self.unit.calls]
        called += [(one, last_name(one.value)) for one in self.unit.decorators]
        return grouped((name, one) for one, last in called for name in (last, *_first_names(self.unit, last)))

    @cached_property
    def takers(self) -> Mapping[str, Sequence[Taker]]:
        """The calls that are given something by its name."""
        found: list[tuple[str, Taker]] = []
        for call in self.unit.calls:
            for at, argument in enumerate(call.arguments):
                if given := _given_name(argument):
                    found += [(name, Taker(call, at)) for name in (given, *_first_names(self.unit, given))]
        return grouped(found)

    @cached_property
    def derived(self) -> Mapping[str, Sequence[str]]:
        """The ids of classes by the last names of what they are made from."""
        has_tables = self.unit.rules.has_tables
        return grouped(
            (name, identifier)
            for identifier, bases in self.unit.bases.items()
            for base in bases
            for name in (dict.fromkeys(bases_named(base.value)) if has_tables else [_base_name(base.value)])
        )

    @cached_property
    def assigned(self) -> Mapping[str, Sequence[Assignment]]:
        """What is assigned to attributes of other objects, by their names."""
        return grouped((last_name(one.target), one) for one in self.unit.assigned)

    @cached_property
    def fills(self) -> Mapping[str, Sequence[Fill]]:
        """Objects that are written with their fields, by the last name of the type."""
        return grouped((_filled_class(self.unit, one), one) for one in self.unit.fills)

    @cached_property
    def calls(self) -> Mapping[str, Sequence[CallSite]]:
        """What is called in a function or class, by its path and id."""
        path, calls = self.unit.path, self.unit.calls
        scopes = {call.scope for call in calls}
        names = {scope: [f"{path}::{one}" for one in (scope, *_prefixes(scope)) if one] for scope in scopes}
        return grouped((name, call) for call in calls for name in names[call.scope])

    @cached_property
    def sharing(self) -> Mapping[str, Sequence[str]]:
        """The folder or namespaces in which names of the file meet those of others."""
        sharing = self.unit.rules.sharing
        if sharing == "folder":
            return {self.unit.path.rpartition("/")[0]: [""]}
        return {name: [""] for name in namespaces(self.unit)} if sharing == "namespace" else {}

    @cached_property
    def tops(self) -> Mapping[str, Sequence[str]]:
        """The names that a file has for others in its folder, behind this folder."""
        if self.unit.rules.sharing != "folder":
            return {}
        folder = self.unit.path.rpartition("/")[0]
        names = dict.fromkeys((*self.unit.children.get("", ()), *self.unit.bindings.get("", ())))
        return {f"{folder}::{name}": [""] for name in names}

    @cached_property
    def spaces(self) -> Mapping[str, Sequence[str]]:
        """The namespaces to which the file adds, with those around them."""
        if self.unit.rules.sharing not in {"namespace", "included"}:
            return {}
        return {part: [""] for name in namespaces(self.unit) for part in with_parents(name)}

    @cached_property
    def variables(self) -> Mapping[str, Sequence[str]]:
        """The scopes of variables of files and namespaces, by the full names of these."""
        return grouped((full, scope) for full, scope in self._space_names(self.unit.bindings))

    @cached_property
    def forwards(self) -> Mapping[str, Sequence[str]]:
        """Functions that are only declared, by their full names."""
        return grouped((full, "") for full, _ in self._space_names(self.unit.forwards))

    def _space_names(self, names: Mapping[str, Iterable[str]]) -> Iterator[tuple[str, str]]:
        if self.unit.rules.sharing != "included":
            return
        for scope, listed in names.items():
            around = self.unit.definitions.get(scope)
            if around is None or around.kind == "module":
                yield from ((f"{around.qualified}.{name}" if around else name, scope) for name in listed)

    @cached_property
    def stored(self) -> Mapping[str, Sequence[Assignment]]:
        """What is put into fields and variables, by `.name` or `Type.field`; arguments of templates by `<Template`."""
        return grouped((key, one) for one in self.unit.stored if (key := _stored_key(one)))

    @cached_property
    def everywhere(self) -> Mapping[str, Sequence[str]]:
        """Under no name the namespaces that the file makes known to all files."""
        uses = self.unit.reexported if self.unit.rules.sharing == "namespace" else ()
        return {"": uses} if uses else {}

    @cached_property
    def looks(self) -> dict[int, int]:
        """What others see: the keys under which the file is found, and a hash of what they find there."""
        unit, family = self.unit, self.unit.rules.family
        seen: dict[int, list[int]] = defaultdict(list)

        def show(sort: str, table: Mapping[str, Sequence[_Found]], hashed: Callable[[_Found], int]) -> None:
            for name, found in table.items():
                seen[key_of(sort, family, name)] += map(hashed, found)

        known: dict[int, int] = {}  # calls and definitions are in several tables

        def of_call(call: CallSite | Decorator) -> int:
            return known.get(id(call)) or known.setdefault(id(call), key_of(_text(call)))

        def of_definition(one: Definition) -> int:
            return known.get(id(one)) or known.setdefault(id(one), key_of(_definition(one)))

        show("name", self.named, of_definition)
        show("full", self.full, of_definition)
        show("extensions", self.extensions, of_definition)
        show("callers", self.callers, of_call)
        show("takers", self.takers, lambda taker: of_call(taker.call) ^ taker.at)
        show("derived", self.derived, key_of)
        show("assigned", self.assigned, _hashed)
        show("fills", self.fills, _hashed)
        show("calls", self.calls, of_call)
        show("sharing", self.sharing, key_of)
        show("top", self.tops, key_of)
        show("spaces", self.spaces, key_of)
        show("everywhere", self.everywhere, key_of)
        show("variables", self.variables, key_of)
        show("stored", self.stored, _hashed)
        show("forwards", self.forwards, key_of)
        for name in (*unit.path.split("/")[:-1], stem(unit.path)):
            seen[key_of("module", name)].append(0)
        seen[key_of("file", unit.path)].append(_seen(unit))
        return {key: joined(shown) for key, shown in seen.items()}


def _seen(unit: Unit) -> int:
    """A hash of all that a file says but where it says so, and but what it calls."""
    definitions = [_definition(one) + one.parent for one in unit.ir.definitions]
    lists = [getattr(unit.ir, name) for name in unit.ir.__slots__ if name not in _UNSEEN]
    statements = [one if isinstance(one, str) else _text(one) for statements in lists for one in statements]
    others = [f"{one.decorated}\t{fingerprint(one.value)}" for one in unit.decorators]
    texts = [unit.language, unit.namespace, *definitions, *statements, *map(_text, unit.contents), *others]
    return key_of(*texts)


def _definition(found: Definition) -> str:
    return f"{found.id}\t{found.kind}\t{text_of(found.returns)}\t{found.is_local}"


_PLACE = ("line", "byte")


def _text(found: NamedTuple) -> str:
    """A statement without the place at which it stands."""
    return "\t".join([text_of(part) for part in (found[:-2] if found._fields[-2:] == _PLACE else found)])


def _hashed(found: NamedTuple) -> int:
    return key_of(_text(found))


def _stored_key(one: Assignment) -> str:
    if one.role == "instance":
        return f"<{last_name(one.target)}"
    match one.target:
        case Attribute(Instance(written), name):
            return f"{written.name}.{name}"
        case Attribute(_, name):
            return f".{name}"
        case Name(text) if one.role == "store":
            return f".{text}"
        case _:
            return ""


def _prefixes(scope: str) -> Iterator[str]:
    while scope := scope.rpartition(".")[0]:
        yield scope


def _first_names(unit: Unit, name: str) -> list[str]:
    """The names that something has where it is imported from; of all that a module gives, the name of the module."""
    imports = unit.imports.get(name)
    if not imports:
        return []
    found = {stem(one.module) if one.member in {"", "default"} else one.member for one in imports}
    return sorted(found - {name})


def _called(callee: Expression, rules: Rules) -> str:
    """The last name in what is called; of what makes an object, the class."""
    is_maker = isinstance(callee, Attribute) and callee.name in rules.makers
    return last_name(callee.of if is_maker and isinstance(callee, Attribute) else callee)


def _given_name(argument: Argument) -> str:
    """The last name of what is given, where that is a name or path."""
    value = argument.value
    if isinstance(value, Attribute | Function):
        return value.name
    return value.text if isinstance(value, Name | NameOrCall) else ""


def _base_name(base: Expression) -> str:
    name = base.type.name if isinstance(base, Instance) else last_name(base)
    return name.removesuffix(".prototype").rpartition(".")[2]


def _filled_class(unit: Unit, fill: Fill) -> str:
    is_own = fill.type == "Self" or fill.type in unit.rules.selves
    owner = next((one for one in unit.around(fill.scope) if is_class(one)), None) if is_own else None
    return owner.name if owner else fill.type.rpartition(".")[2]


def last_name(expression: Expression) -> str:
    """The name that an expression ends with, but for calls; "" where it ends with none."""
    match expression:
        case Name(text) | NameOrCall(text) | Implicit(_, text):
            return text
        case Attribute(_, name) | Function(name):
            return name
        case Call(of) | New(of) | Element(of):
            return last_name(of)
        case Instance(written):
            return written.name.rpartition(".")[2]
        case _:
            return ""


def stem(path: str) -> str:
    """The name of a file or folder, without its ending."""
    return path.rstrip("/").rpartition("/")[2].partition(".")[0]


def full_name(unit: Unit, qualified: str) -> str:
    """A qualified name behind the namespace of its file."""
    return f"{unit.namespace}.{qualified}" if unit.namespace and qualified else qualified or unit.namespace


def namespaces(unit: Unit) -> list[str]:
    """The namespaces that a file adds to: its own, and those that are written as blocks in it."""
    blocks = {definition.qualified for definition in unit.definitions.values() if definition.kind == "module"}
    return sorted({unit.namespace, *(full_name(unit, block) for block in blocks)})


def with_parents(namespace: str) -> Iterator[str]:
    """A namespace and those around it, the innermost first."""
    while namespace:
        yield namespace
        namespace = namespace.rpartition(".")[0]


def is_class(definition: Definition) -> bool:
    """Whether a definition has members."""
    return definition.kind in CLASSES or definition.kind == "module"
