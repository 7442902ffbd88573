"""What a file has to offer to others, in tables: by the names under which it is looked for.

What is found in a table of a file depends on that file alone.
"""

import re
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TypeVar

from docindex_dagster.graph.policies import Policy
from docindex_dagster.graph.units import CLASSES, Definition, Reference, Unit

_Found = TypeVar("_Found")
Stored = tuple[str, str, str]
"""Where something is put into a field or variable: the scope, the object and what it is given."""
_ENDS = re.compile(r"[.;]")
_GIVEN = re.compile(r"[^\W\d]\w*[?!]?")


def key_of(*parts: str) -> int:
    """A short hash of what can be looked up. Two that are equal by chance cost a look, not an answer."""
    return zlib.crc32("\0".join(parts).encode("utf-8", "surrogatepass"))


@dataclass(frozen=True, eq=False)
class Offers:
    """The tables of a file."""

    unit: Unit

    @cached_property
    def named(self) -> Mapping[str, Sequence[Definition]]:
        """Definitions by their names."""
        return _table((one.name, one) for one in self.unit.definitions.values())

    @cached_property
    def full(self) -> Mapping[str, Sequence[Definition]]:
        """Definitions by their full names."""
        return _table((full_name(self.unit, one.qualified), one) for one in self.unit.definitions.values())

    @cached_property
    def extensions(self) -> Mapping[str, Sequence[Definition]]:
        """Functions that are members of another type, by their names."""
        definitions = self.unit.definitions
        known = [definitions[function] for function in self.unit.receivers if function in definitions]
        return _table((one.name, one) for one in known)

    @cached_property
    def callers(self) -> Mapping[str, Sequence[Reference]]:
        """Calls and decorators by the last name in them, and by that which it has where it is imported from."""
        policy = self.unit.policy
        references = [
            *((reference, _called(reference.name, policy)) for reference in self.unit.calls),
            *((reference, last_name(reference.value)) for reference in self.unit.decorators),
        ]
        return _table((name, one) for one, called in references for name in (called, *_first_names(self.unit, called)))

    @cached_property
    def takers(self) -> Mapping[str, Sequence[tuple[Reference, int]]]:
        """The calls that are given something by its name, and where."""
        found: list[tuple[str, tuple[Reference, int]]] = []
        for reference in self.unit.calls:
            for at, argument in enumerate(reference.arguments):
                given = argument.rpartition(".")[2].lstrip("&").rstrip("'")
                if _GIVEN.fullmatch(given):
                    found += [(name, (reference, at)) for name in (given, *_first_names(self.unit, given))]
        return _table(found)

    @cached_property
    def derived(self) -> Mapping[str, Sequence[str]]:
        """The ids of classes by the last names of what they are made from."""
        return _table(
            (last_name(reference.value.removesuffix(".prototype").partition("<")[0]), identifier)
            for identifier, bases in self.unit.bases.items()
            for reference in bases
        )

    @cached_property
    def assigned(self) -> Mapping[str, Sequence[Reference]]:
        """What is assigned to attributes of other objects, by their names."""
        return _table((last_name(reference.name), reference) for reference in self.unit.assigned)

    @cached_property
    def fills(self) -> Mapping[str, Sequence[Reference]]:
        """Objects that are written with their fields, by the last name of the type."""
        return _table((_filled_class(self.unit, reference), reference) for reference in self.unit.fills)

    @cached_property
    def references(self) -> Mapping[str, Sequence[Reference]]:
        """What is called in a function or class, by its path and id."""
        path = self.unit.path
        return _table(
            (f"{path}::{scope}", reference)
            for reference in self.unit.calls
            for scope in (reference.scope, *_prefixes(reference.scope))
            if scope
        )

    @cached_property
    def sharing(self) -> Mapping[str, Sequence[str]]:
        """The folder or namespaces in which names of the file meet those of others."""
        sharing = self.unit.policy.sharing
        if sharing == "folder":
            return {self.unit.path.rpartition("/")[0]: [""]}
        return {name: [""] for name in namespaces(self.unit)} if sharing == "namespace" else {}

    @cached_property
    def tops(self) -> Mapping[str, Sequence[str]]:
        """The names that a file has for others in its folder, behind this folder."""
        if self.unit.policy.sharing != "folder":
            return {}
        folder = self.unit.path.rpartition("/")[0]
        names = dict.fromkeys((*self.unit.children.get("", ()), *self.unit.binds.get("", ())))
        return {f"{folder}::{name}": [""] for name in names}

    @cached_property
    def spaces(self) -> Mapping[str, Sequence[str]]:
        """The namespaces to which the file adds, with those around them."""
        if self.unit.policy.sharing not in {"namespace", "included"}:
            return {}
        return {part: [""] for name in namespaces(self.unit) for part in with_parents(name)}

    @cached_property
    def variables(self) -> Mapping[str, Sequence[str]]:
        """The scopes of variables of files and namespaces, by the full names of these."""
        return _table((full, scope) for full, scope, name in self._space_names(self.unit.binds) if "." not in name)

    @cached_property
    def forwards(self) -> Mapping[str, Sequence[str]]:
        """Functions that are only declared, by their full names."""
        return _table((full, "") for full, _, _ in self._space_names(self.unit.forwards))

    def _space_names(self, names: Mapping[str, Iterable[str]]) -> Iterator[tuple[str, str, str]]:
        if self.unit.policy.sharing != "included":
            return
        for scope, listed in names.items():
            around = self.unit.definitions.get(scope)
            if around is None or around.kind == "module":
                yield from ((f"{around.qualified}.{name}" if around else name, scope, name) for name in listed)

    @cached_property
    def stored(self) -> Mapping[str, Sequence[Stored]]:
        """What is put into fields, by `.name` or `Type.field`; arguments of types by `<Type`."""
        found: list[tuple[str, Stored]] = []
        is_included = self.unit.policy.sharing == "included"
        for scope, names in self.unit.binds.items() if is_included else ():
            for name, values in names.items():
                of, dot, last = name.rpartition(".")
                if name.startswith("<"):
                    found += [(f"<{last.lstrip('<')}", (scope, "", value)) for value in values]
                elif dot:
                    found += [(name[1:] if name[0] == ":" else f".{last}", (scope, of, value)) for value in values]
        return _table(found)

    @cached_property
    def everywhere(self) -> Mapping[str, Sequence[str]]:
        """Under no name the namespaces that the file makes known to all files."""
        uses = self.unit.reexported if self.unit.policy.sharing == "namespace" else ()
        return {"": uses} if uses else {}

    @cached_property
    def looks(self) -> dict[int, int]:
        """What others see: the keys under which the file is found, and a hash of what they find there."""
        unit, family = self.unit, self.unit.policy.family
        seen: dict[int, list[str]] = defaultdict(list)
        text_of = cache(_text)  # calls are in several tables

        def show(sort: str, table: Mapping[str, Sequence[_Found]], text: Callable[[_Found], str]) -> None:
            for name, found in table.items():
                seen[key_of(sort, family, name)] += map(text, found)

        show("name", self.named, _definition)
        show("full", self.full, _definition)
        show("extensions", self.extensions, _definition)
        show("callers", self.callers, text_of)
        show("takers", self.takers, lambda taken: f"{taken[1]}\t{text_of(taken[0])}")
        show("derived", self.derived, str)
        show("assigned", self.assigned, text_of)
        show("fills", self.fills, text_of)
        show("references", self.references, text_of)
        show("sharing", self.sharing, str)
        show("top", self.tops, str)
        show("spaces", self.spaces, str)
        show("everywhere", self.everywhere, str)
        show("variables", self.variables, str)
        show("stored", self.stored, str)
        show("forwards", self.forwards, str)
        for name in (*unit.path.split("/")[:-1], stem(unit.path)):
            seen[key_of("module", name)].append("")
        seen[key_of("file", unit.path)].append(unit.seen)
        return {key: key_of(*shown) for key, shown in seen.items()}


def _table(found: Iterable[tuple[str, _Found]]) -> dict[str, list[_Found]]:
    table: dict[str, list[_Found]] = defaultdict(list)
    for name, one in found:
        table[name].append(one)
    return dict(table)


def _definition(found: Definition) -> str:
    return f"{found.id}\t{found.kind}\t{found.returns}\t{found.is_local}"


def _text(found: Reference) -> str:
    return f"{found.kind}\t{found.scope}\t{found.name}\t{found.value}"


def _prefixes(scope: str) -> Iterator[str]:
    while scope := scope.rpartition(".")[0]:
        yield scope


def _first_names(unit: Unit, name: str) -> list[str]:
    """The names that something has where it is imported from; of all that a module gives, the name of the module."""
    found = {
        stem(imported.module) if imported.name in {"", "default"} else imported.name
        for imported in unit.imports.get(name, ())
    }
    return sorted(found - {name})


def _called(expression: str, policy: Policy) -> str:
    """The last name in what is called; of what makes an object, the class."""
    owner, _, name = expression.rpartition(".")
    return last_name(owner) if owner and name in policy.makers else last_name(expression)


def _filled_class(unit: Unit, reference: Reference) -> str:
    owner = unit.class_around(reference.scope) if reference.name == "Self" else None
    return owner.name if owner else last_name(reference.name)


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


def last_name(expression: str) -> str:
    """The name that an expression ends with, but for calls."""
    return _ENDS.split(expression.rstrip("()@[]"))[-1]
