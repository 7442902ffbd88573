"""Lookup tables of a file: the symbols and statements that other files can find, by name.

The tables of a file depend only on that file. Fingerprints of equal content are the same in all processes.
"""

import posixpath
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeVar, get_args

import orjson

from docindex_dagster.callgraph.ir import (
    NAMES,
    Assignment,
    Attribute,
    CallSite,
    Decorator,
    Definition,
    Expression,
    Fill,
    Instance,
    Name,
    Statement,
    last_name,
)
from docindex_dagster.callgraph.languages.lua import bases_named
from docindex_dagster.callgraph.nesting import is_class, with_parents
from docindex_dagster.callgraph.rules import Rules
from docindex_dagster.callgraph.units import Unit, grouped

_Found = TypeVar("_Found")
# Calls do not affect the meaning of names in the file, except through the arguments they pass.
_NOT_FINGERPRINTED = frozenset({"calls", "decorators", "fills"})
SORTS = (
    "named",
    "full",
    "extensions",
    "callers",
    "takers",
    "derived",
    "assigned",
    "fills",
    "sharing",
    "tops",
    "spaces",
    "everywhere",
    "variables",
    "stored",
    "forwards",
    "mounted",
)
"""The names of the lookup tables; each is a property of `Offers`."""
_POSITION = ("line", "byte")
_ENDS = {row: -2 for row in (Definition, *get_args(Statement)) if row._fields[-2:] == _POSITION}


class Taker(NamedTuple):
    """A call that receives a named value as an argument, with the position of the argument."""

    call: CallSite
    at: int


@dataclass(frozen=True, eq=False)
class LookupTables:
    """The lookup tables of a file."""

    unit: Unit

    @cached_property
    def named(self) -> Mapping[str, Sequence[Definition]]:
        """Definitions by name."""
        return grouped((one.name, one) for one in self.unit.definitions.values())

    @cached_property
    def full(self) -> Mapping[str, Sequence[Definition]]:
        """Definitions by full name."""
        return grouped((self.unit.full_name(one.qualified), one) for one in self.unit.definitions.values())

    @cached_property
    def extensions(self) -> Mapping[str, Sequence[Definition]]:
        """Extension functions by name."""
        definitions = self.unit.definitions
        known = [definitions[function] for function in self.unit.receivers if function in definitions]
        return grouped((one.name, one) for one in known)

    @cached_property
    def callers(self) -> Mapping[str, Sequence[CallSite | Decorator]]:
        """Calls and decorators by the last name of the callee, and by its original name if it is imported."""
        rules = self.unit.rules
        named: list[tuple[str, CallSite | Decorator]] = [
            (_callee_name(one.callee, rules), one) for one in self.unit.calls
        ]
        named += [(last_name(one.value), one) for one in self.unit.decorators]
        return grouped(self._with_original_names(named))

    @cached_property
    def takers(self) -> Mapping[str, Sequence[Taker]]:
        """Calls by the names of their arguments."""
        named = (
            (getattr(argument.value, NAMES[type(argument.value)]), Taker(call, at))
            for call in self.unit.calls
            for at, argument in enumerate(call.arguments)
            if type(argument.value) in NAMES
        )
        return grouped(self._with_original_names(pair for pair in named if pair[0]))

    def _with_original_names(self, named: Iterable[tuple[str, _Found]]) -> Iterator[tuple[str, _Found]]:
        """Yield the pairs, repeating imported names under their original names."""
        imports = self.unit.imports
        for name, one in named:
            yield name, one
            if name in imports:
                yield from ((original, one) for original in _original_names(self.unit, name))

    @cached_property
    def derived(self) -> Mapping[str, Sequence[str]]:
        """Ids of classes by the last names of their bases."""
        has_tables = self.unit.rules.has_tables
        return grouped(
            (name, identifier)
            for identifier, bases in self.unit.bases.items()
            for base in bases
            for name in (dict.fromkeys(bases_named(base.value)) if has_tables else [_base_name(base.value)])
        )

    @cached_property
    def assigned(self) -> Mapping[str, Sequence[Assignment]]:
        """Assignments to attributes of other objects, by attribute name."""
        return grouped((last_name(one.target), one) for one in self.unit.assigned)

    @cached_property
    def fills(self) -> Mapping[str, Sequence[Fill]]:
        """Object initializers by the last name of the type."""
        return grouped((_filled_class(self.unit, one), one) for one in self.unit.fills)

    @cached_property
    def calls(self) -> Mapping[str, Sequence[CallSite]]:
        """Calls by the ids of the functions and classes that contain them."""
        return grouped((scope, call) for call in self.unit.calls for scope in with_parents(call.scope))

    @cached_property
    def sharing(self) -> Mapping[str, Sequence[str]]:
        """The folder or namespaces in which the file shares its names with other files."""
        sharing = self.unit.rules.sharing
        if sharing == "folder":
            return {self.unit.path.rpartition("/")[0]: [""]}
        return {name: [""] for name in namespaces(self.unit)} if sharing == "namespace" else {}

    @cached_property
    def tops(self) -> Mapping[str, Sequence[str]]:
        """The top-level names that other files in the folder can see, prefixed with the folder."""
        if self.unit.rules.sharing != "folder":
            return {}
        folder = self.unit.path.rpartition("/")[0]
        names = dict.fromkeys((*self.unit.children.get("", ()), *self.unit.bindings.get("", ())))
        return {f"{folder}::{name}": [""] for name in names}

    @cached_property
    def spaces(self) -> Mapping[str, Sequence[str]]:
        """The namespaces that the file adds to, including enclosing ones."""
        if self.unit.rules.sharing not in {"namespace", "included"}:
            return {}
        return {part: [""] for name in namespaces(self.unit) for part in with_parents(name)}

    @cached_property
    def variables(self) -> Mapping[str, Sequence[str]]:
        """Scopes of variables at file or namespace level, by full name of the variable."""
        return grouped(self._space_names(self.unit.bindings))

    @cached_property
    def forwards(self) -> Mapping[str, Sequence[str]]:
        """Scopes of forward-declared functions, by full name of the function."""
        return grouped(self._space_names(self.unit.forwards))

    @cached_property
    def mounted(self) -> Mapping[str, Sequence[str]]:
        """Files that Rust path attributes declare as modules of this one (`#[path = "inner/far.rs"]`)."""
        if not self.unit.rules.has_module_paths:
            return {}
        folder = posixpath.dirname(self.unit.path)
        modules = {one.module for each in self.unit.imports.values() for one in each if one.module.endswith(".rs")}
        return {posixpath.normpath(posixpath.join(folder, module)): [""] for module in modules}

    def _space_names(self, names: Mapping[str, Iterable[str]]) -> Iterator[tuple[str, str]]:
        if self.unit.rules.sharing != "included":
            return
        for scope, listed in names.items():
            around = self.unit.definitions.get(scope)
            if around is None or around.kind == "module":
                yield from ((f"{around.qualified}.{name}" if around else name, scope) for name in listed)

    @cached_property
    def stored(self) -> Mapping[str, Sequence[Assignment]]:
        """Values stored in fields and variables, by `.name` or `Type.field`; template arguments by `<Template`."""
        return grouped((key, one) for one in self.unit.stored if (key := _stored_key(one)))

    @cached_property
    def everywhere(self) -> Mapping[str, Sequence[str]]:
        """The namespaces that the file imports for all files, under the empty name."""
        uses = self.unit.reexported if self.unit.rules.sharing == "namespace" else ()
        return {"": uses} if uses else {}

    @cached_property
    def fingerprints(self) -> Mapping[int, int]:
        """The keys under which other files find something in this file, each with a fingerprint of the matches."""
        unit, family = self.unit, self.unit.rules.family
        # Computed once, since calls and definitions appear in several tables.
        known = {id(one): fingerprint(one) for one in (*unit.calls, *unit.definitions.values())}

        def once(part: Any) -> Any:
            return known[id(part)] if id(part) in known else plain(part)

        tables: list[tuple[str, str, Mapping[str, object]]] = [(sort, family, getattr(self, sort)) for sort in SORTS]
        tables += [("file", "", {unit.path: _file_fingerprint(unit)}), ("calls", "", {unit.path: unit.calls})]
        tables += [("module", "", dict.fromkeys((*unit.path.split("/")[:-1], stem(unit.path))))]
        found: dict[int, int] = {}
        for sort, languages, table in tables:
            key_of = keys_of(sort, languages)
            for name, listed in table.items():
                key = key_of(name)
                found[key] = fingerprint((found.get(key), listed), once)
        return found


def _file_fingerprint(unit: Unit) -> int:
    """Return a fingerprint of the IR of a file without its calls."""
    lists = [getattr(unit.ir, name) for name in unit.ir.__slots__ if name not in _NOT_FINGERPRINTED]
    decorated = [(one.decorated, one.value) for one in unit.decorators]
    return fingerprint((unit.language, unit.namespace, lists, unit.contents, decorated))


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


def _original_names(unit: Unit, name: str) -> list[str]:
    """Return the names that an imported name has in its modules; for a module or default import, the module's name."""
    imports = unit.imports.get(name)
    if not imports:
        return []
    found = {stem(one.module) if one.member in {"", "default"} else one.member for one in imports}
    return sorted(found - {name})


def _callee_name(callee: Expression, rules: Rules) -> str:
    """Return the last name of a callee; for a factory method, the name of the class."""
    is_factory = isinstance(callee, Attribute) and callee.name in rules.factories
    return last_name(callee.of if is_factory and isinstance(callee, Attribute) else callee)


def _base_name(base: Expression) -> str:
    name = base.type.name if isinstance(base, Instance) else last_name(base)
    return name.removesuffix(".prototype").rpartition(".")[2]


def _filled_class(unit: Unit, fill: Fill) -> str:
    is_own = fill.type == "Self" or fill.type in unit.rules.self_names
    owner = next((one for one in unit.around(fill.scope) if is_class(one)), None) if is_own else None
    return owner.name if owner else fill.type.rpartition(".")[2]


def stem(path: str) -> str:
    """Return the name of a file or folder up to its first dot."""
    return path.rstrip("/").rpartition("/")[2].partition(".")[0]


def namespaces(unit: Unit) -> list[str]:
    """Return the namespaces that a file adds to: its own and those declared as blocks in it."""
    blocks = {definition.qualified for definition in unit.definitions.values() if definition.kind == "module"}
    return sorted({unit.namespace, *(unit.full_name(block) for block in blocks)})


def key_of(*parts: str) -> int:
    """Return a short hash of a lookup key. A collision costs time but does not change results."""
    return zlib.crc32("\0".join(parts).encode("utf-8", "surrogatepass"))


def keys_of(sort: str, languages: str) -> Callable[[str], int]:
    """Return the function from names to keys, for one table and language family."""
    prefix = key_of(sort, languages, "")
    return lambda name: zlib.crc32(name.encode("utf-8", "surrogatepass"), prefix)


def plain(part: Any) -> Any:
    """Return a statement without its position, or the cached fingerprint of an expression or type."""
    if isinstance(part, tuple):
        return part[: _ENDS.get(type(part))]
    try:
        return part.fingerprint
    except AttributeError:
        fields = [getattr(part, name) for name in part.__match_args__]
        object.__setattr__(part, "fingerprint", fingerprint((type(part).__name__, fields)))
        return part.fingerprint


def fingerprint(content: Any, default: Callable[[Any], Any] = plain) -> int:
    """Return a short hash of statements or their parts; `default` converts the parts for serialization."""
    return zlib.crc32(orjson.dumps(content, default, orjson.OPT_PASSTHROUGH_DATACLASS))
