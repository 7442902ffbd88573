"""One file, ready to be looked up: its definitions and statements by scope and name, and what its collections hold."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from itertools import count
from typing import Protocol, TypeVar

from docindex_dagster.callgraph.ir import (
    FILE,
    THIS,
    Assignment,
    Attribute,
    Base,
    CallSite,
    Collection,
    Definition,
    Element,
    Expression,
    FileIR,
    Function,
    Import,
    Instance,
    Literal,
    Name,
    NameOrCall,
    Parameter,
    TypeRef,
    Unknown,
    head,
    path_of,
    whole,
)
from docindex_dagster.callgraph.languages import rules_of
from docindex_dagster.callgraph.languages.lua import assigned_fields
from docindex_dagster.callgraph.nesting import CLASSES, FUNCTIONS, around, holder
from docindex_dagster.callgraph.rules import Rules

_CALL_ORDER = {"call": 0, "read": 1, "new": 2, "macro": 3}
# Methods by which something is put into a collection; it is what they are given last.
_FILLING_NAMES = """
    append add push put set insert unshift register subscribe extend appendleft push_back emplace_back Add enqueue offer
    addLast addFirst push_front emplace setdefault << on connect store prepend
"""
_FILLING = frozenset(_FILLING_NAMES.split())


class Place(Protocol):
    """Where a statement stands: the line of the file, and the byte of its text."""

    @property
    def line(self) -> int:
        """From 1."""

    @property
    def byte(self) -> int:
        """From 0."""


class Chunks:
    """The chunks of a file: their ids, the lines with which they begin, and the bytes, where these are known."""

    def __init__(self, ids: Sequence[str], lines: Sequence[int], starts: Sequence[int | None]) -> None:
        self.ids = ids
        known = [byte for byte in starts if byte is not None]
        self._has_bytes = len(known) == len(starts)
        self._starts = known if self._has_bytes else lines

    def at(self, place: Place) -> str:
        """The id of the chunk in which something stands."""
        found = bisect_right(self._starts, place.byte if self._has_bytes else place.line)
        return self.ids[max(0, found - 1)]


class Unit:
    """One file.

    Args:
        path: of the file.
        language: in which it is written, where what it says names none.
        ir: what it says.
        is_test: whether it is one of tests.
        chunks: those of it.
    """

    def __init__(self, path: str, language: str, ir: FileIR, *, is_test: bool, chunks: Chunks) -> None:
        language = ir.language or language
        rules = rules_of(language)
        hooks = rules.hooks
        ir = hooks.prepared(ir) if hooks.prepared is not None else ir
        self.path, self.language, self.rules = path, language, rules
        self.is_test, self.chunks, self.ir = is_test, chunks, ir
        self.namespace = ir.namespace or (hooks.namespace(path) if hooks.namespace is not None else "")
        self.definitions = {one.id: one for one in ir.definitions}
        placed = hooks.placed(self.definitions) if hooks.placed is not None else self.definitions.values()
        self.children = _children(placed, rules)  # by the qualified name of the parent, then by name
        self.calls = sorted(ir.calls, key=lambda call: _CALL_ORDER[call.kind])
        self.decorators, self.fills = ir.decorators, ir.fills
        self.returns = grouped((one.scope, one.value) for one in ir.returns)
        self.bases = _bases(ir.bases, self.definitions)  # by the id of the class
        self.receivers = {one.scope: one.type for one in ir.receivers}  # of functions that are members of another type
        self.generics = grouped((one.scope, one) for one in ir.generics)  # by class or function
        self.exports = grouped((one.name, one.value) for one in ir.exports)
        self.properties = frozenset(ir.properties)  # methods that are read as attributes
        self.hidden = frozenset(ir.hidden)  # functions that are not found by their names
        self.forwards = grouped((one.scope, one.name) for one in ir.forwards)  # functions that are only declared
        self._assign()
        self._import()

    def _assign(self) -> None:
        """What variables, attributes and parameters are."""
        rules, ir = self.rules, self.ir
        self.parameters = grouped((one.scope, one) for one in ir.parameters)  # by function
        self.contents = [*contents_of(self.calls)]  # what calls put into collections
        assignments = [*map(unpacked, ir.assignments)] if rules.has_namespaces else ir.assignments
        attributed = [*filled([*assignments, *self.contents], self.definitions)]
        is_included = rules.sharing == "included"
        bound = (
            [*_lifted(assignments, self.definitions), *contents_outside(self.contents)] if is_included else attributed
        )
        # What variables and fields are declared or assigned to be.
        self.bindings = _by_scope(
            (one, one.target.text) for one in bound if one.role == "bind" and isinstance(one.target, Name)
        )
        # C: what is put into variables that are declared elsewhere; all that is put into fields, variables, templates.
        self.stores = _by_scope(
            (one, one.target.text) for one in bound if one.role == "store" and isinstance(one.target, Name)
        )
        self.stored = [one for one in bound if one.role != "test"] if is_included else []
        # What is assigned to attributes of anything, by the path that is written; the types for which one is tested.
        self.dotted = _by_scope((one, path_of(one.target)) for one in bound if isinstance(one.target, Attribute))
        self.tested = _by_scope((one, path_of(one.target)) for one in bound if one.role == "test")
        self.roots = _roots(bound)  # by scope: the first names of paths that are assigned or tested
        self.attributes = _attributes(attributed, self.definitions, rules)  # of classes: by name, scopes and values
        self.assigned = _assigned(ir.assignments, rules)  # to attributes of what is not the object itself
        named: list[Assignment | Parameter] = [*bound, *ir.parameters]
        self.declared = [one for one in named if isinstance(one.value, Instance)]
        # What functions put into outer variables.
        self.filled = filled_outside(ir.assignments, self.definitions) if rules.has_tables else {}

    def _import(self) -> None:
        """What is imported, and passed on to those that import the file."""
        found = [one if one.is_passed_on else _with_scope(one, self.rules, self.definitions) for one in self.ir.imports]
        self.left_out = _left_out(found)
        found = [one for one in found if one.kind != "left out"]
        own, passed_on = ([one for one in found if one.is_passed_on is passed] for passed in (False, True))
        self.imported = [*own, *passed_on]
        self.imports = grouped((one.name or one.module, one) for one in own if one.kind == "name")  # by the name here
        self.wildcards = [one for one in own if one.kind != "name"]
        self.reexports = {one.name: one for one in passed_on if one.kind == "name"}
        self.reexported = [one.module for one in passed_on if one.kind != "name"]  # modules of which all is

    @property
    def statements(self) -> int:
        """How much the file says, and so how much memory the unit takes: some 600 bytes each."""
        ir = self.ir
        return 1 + sum(map(len, (ir.definitions, ir.calls, ir.assignments, ir.parameters, ir.returns)))

    @cached_property
    def directives(self) -> Sequence[str]:
        """The namespaces whose names a file of C++ uses."""
        return [one.module.replace("::", ".") for one in self.wildcards if one.kind == "directive"]

    def decorated_by(self, identifier: str) -> Sequence[Expression]:
        """The decorators of a definition, the outermost first."""
        return self._decorated.get(identifier, ())

    @cached_property
    def _decorated(self) -> Mapping[str, Sequence[Expression]]:
        return grouped((one.decorated, one.value) for one in self.decorators)

    @cached_property
    def literals(self) -> Mapping[str, AbstractSet[str]]:
        """The last names of all that something is written in, by what is before them."""
        found: dict[str, set[str]] = defaultdict(set)
        for qualified in self.children:
            around, _, name = qualified.rpartition(".")
            found[around].add(name)
        return dict(found)

    @cached_property
    def free_methods(self) -> Mapping[str, Sequence[Definition]]:
        """The classes of a file by the names of their methods."""
        classes = (one for one in self.definitions.values() if one.kind == "class" and not one.parent)
        return grouped((name, one) for one in classes for name in self.children.get(one.qualified, ()))

    @cached_property
    def packages(self) -> frozenset[str]:
        """The first names of modules that are imported by several."""
        return frozenset(module.partition(".")[0] for module in self.imports if "." in module)

    @cached_property
    def _taken(self) -> Mapping[str, frozenset[str]]:
        return {scope: frozenset(one.name for one in taken) for scope, taken in self.parameters.items()}

    def taken(self, function: str) -> frozenset[str]:
        """The names of the parameters of a function."""
        return self._taken.get(function, frozenset())

    def takes(self, function: str, name: str) -> bool:
        """Whether a function has a parameter of a name."""
        return name in self._taken.get(function, ())

    def binds(self, scope: str, name: str) -> Sequence[Expression]:
        """What a name is declared or assigned to be in a scope itself."""
        names = self.bindings.get(scope)
        return names.get(name, ()) if names is not None else ()

    def full_name(self, qualified: str) -> str:
        """A qualified name behind the namespace of the file."""
        return f"{self.namespace}.{qualified}" if self.namespace and qualified else qualified or self.namespace

    def same_named(self, qualified: str) -> Iterator[Definition]:
        """The definitions of one qualified name, which their ids number."""
        for number in count(1):
            definition = self.definitions.get(qualified if number == 1 else f"{qualified}~{number}")
            if definition is None:
                return
            yield definition

    def around(self, scope: str) -> Iterator[Definition]:
        """The definitions around a place, the innermost first."""
        return around(self.definitions, scope)

    def children_of(self, qualified: str, name: str) -> Sequence[Definition]:
        """What is defined in a definition under a name."""
        named = self.children.get(qualified)
        return named.get(name, ()) if named is not None else ()

    def holder(self, scope: str) -> tuple[str, bool]:
        """The qualified name of the class, constructor or literal whose `this` a place has; whether it is a literal."""
        return holder(self.definitions, scope)

    def class_around(self, scope: str) -> Definition | None:
        """The class whose member a place is in."""
        return next((around for around in self.around(scope) if around.kind in CLASSES), None)


def _assigned(assignments: Iterable[Assignment], rules: Rules) -> Sequence[Assignment]:
    """What is put into fields where that tells what they are."""
    if rules.has_tables:
        return assigned_fields(assignments)
    return [one for one in assignments if _is_of_another(one)] if rules.has_filled_fields else ()


_Item = TypeVar("_Item")


def grouped(items: Iterable[tuple[str, _Item]]) -> Mapping[str, Sequence[_Item]]:
    """The second of each pair by the first, in their order."""
    found: defaultdict[str, list[_Item]] = defaultdict(list)
    for key, item in items:
        found[key].append(item)
    return dict(found)


def _by_scope(named: Iterable[tuple[Assignment, str]]) -> dict[str, dict[str, list[Expression]]]:
    """Expressions by scope, then by name."""
    found: dict[str, dict[str, list[Expression]]] = {}
    for one, name in named:
        found.setdefault(one.scope, {}).setdefault(name, []).append(one.value)
    return found


def _left_out(imports: Iterable[Import]) -> frozenset[tuple[str, str, str]]:
    """Where all but some of a module is imported, the module, and each name that is not."""
    return frozenset((one.scope, one.module, one.member) for one in imports if one.kind == "left out")


def _children(definitions: Iterable[Definition], rules: Rules) -> dict[str, dict[str, list[Definition]]]:
    found: dict[str, dict[str, list[Definition]]] = {}
    for one in definitions:
        named = found.setdefault(one.parent, {})
        if rules.redefines or one.name not in named:
            named[one.name] = [one]
        else:
            named[one.name].append(one)
    return found


def _lifted(assignments: Iterable[Assignment], definitions: Mapping[str, Definition]) -> Iterator[Assignment]:
    """With the name that a `typedef` gives a struct beside that struct, where it stands at its end."""
    types = {(one.parent, one.name) for one in definitions.values() if one.kind == "type"}
    for one in assignments:
        around = definitions.get(one.scope)
        name = one.target.text if isinstance(one.target, Name) and one.role == "bind" else ""
        is_name = around is not None and one.value is Instance(TypeRef(around.name)) and (around.parent, name) in types
        if around is None or not is_name:
            yield one
        elif name != around.name:
            yield one._replace(scope=around.parent)


def _is_of_another(one: Assignment) -> bool:
    """Whether something is assigned to an attribute of what is not the object itself."""
    target = whole(one.target)
    if one.role != "bind" or not isinstance(target, Attribute) or isinstance(one.value, Unknown):
        return False
    return target.of is not THIS and path_of(target).partition(".")[0] != "this"


def _roots(bound: Iterable[Assignment]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for one in bound:
        found[one.scope].add(root_of(one.target))
    return dict(found)


def _attributes(
    assignments: Iterable[Assignment], definitions: Mapping[str, Definition], rules: Rules
) -> dict[str, dict[str, list[tuple[str, Expression]]]]:
    """What is assigned to attributes of the object in methods."""
    found: dict[str, dict[str, list[tuple[str, Expression]]]] = {}
    for one in assignments if not rules.has_tables else ():
        target = one.target
        if not isinstance(target, Attribute) or not isinstance(target.of, Name) or one.role == "test":
            continue
        is_own = target.of is THIS or target.of.text in rules.selves
        if not is_own or not target.name.lstrip("#%$").isidentifier():
            continue
        if rules.has_prototypes:
            owner, _ = holder(definitions, one.scope)
        else:
            outer = around(definitions, one.scope)
            classes = (each for each in outer if each.kind in CLASSES or each.kind == "module")
            owner = next((each.qualified for each in classes), "")
        if owner:
            found.setdefault(owner, {}).setdefault(target.name, []).append((one.scope, one.value))
    return found


_BASE_ORDER = ("base", "implements", "companion")


def _bases(bases: Sequence[Base], definitions: Mapping[str, Definition]) -> Mapping[str, Sequence[Base]]:
    """By the id of the class; mixins first, of which the last counts first."""
    mixins = [one for one in bases if one.kind == "mixin"]
    others = [one for kind in _BASE_ORDER for one in bases if one.kind == kind]
    return grouped((_class_of(one, definitions), one) for one in (*reversed(mixins), *others))


def _class_of(base: Base, definitions: Mapping[str, Definition]) -> str:
    """The id of the class: the one around it, or the one that it names."""
    inner = f"{base.scope}.{base.cls}"
    return inner if inner in definitions else base.cls or base.scope


def _with_scope(imported: Import, rules: Rules, definitions: Mapping[str, Definition]) -> Import:
    """An import, in the definition around it that has imports of its own."""
    modules = {"module"} if rules.has_module_paths or rules.has_path_imports else set()
    kinds = modules | FUNCTIONS if rules.has_local_imports else modules
    outer = around(definitions, imported.scope) if kinds else ()
    importing = next((one for one in outer if one.kind in kinds), None)
    if importing is None:
        return imported._replace(scope=FILE) if imported.scope else imported
    # What is written in a function knows it by its name alone.
    return imported._replace(scope=importing.qualified if importing.kind in FUNCTIONS else importing.id)


def contents_of(calls: Iterable[CallSite]) -> Iterator[Assignment]:
    """What is put into collections, as if it were assigned to one of their elements."""
    for call in calls:
        callee, given = call.callee, call.arguments[-1] if call.arguments else None
        if call.kind != "call" or given is None or not isinstance(callee, Attribute) or callee.name not in _FILLING:
            continue
        if not given.is_block and not isinstance(given.value, Unknown | Literal | Function):
            yield Assignment("bind", call.scope, Element(callee.of), given.value, call.line, call.byte)


def contents_outside(contents: Iterable[Assignment]) -> Iterator[Assignment]:
    """The same where attributes are not marked: as what is put into a name that is declared elsewhere."""
    for one in map(unpacked, contents):
        if isinstance(one.target, Name | Attribute):
            yield one._replace(role="store")


def unpacked(one: Assignment) -> Assignment:
    """An assignment to an element, or to one of an element, as one to the collection."""
    target, value = one.target, one.value
    while isinstance(target, Element):
        target, value = target.of, Collection((value,))
    return one if target is one.target else one._replace(target=target, value=value)


def filled(assignments: Sequence[Assignment], definitions: Mapping[str, Definition]) -> Iterator[Assignment]:
    """The same, with an assignment to an element as one to the collection, where that is an attribute or variable."""
    known = {(one.scope, one.target) for one in assignments}
    for one in assignments:
        if not isinstance(one.target, Element):
            yield one
            continue
        target = whole(one.target)
        is_own = isinstance(target, Attribute) and root_of(target) == "this"
        scope = one.scope if is_own else _declaring(one.scope, target, known, definitions)
        if scope is not None:
            yield Assignment("bind", scope, target, Collection((one.value,)), one.line, one.byte)


def _declaring(
    scope: str, target: Expression, known: AbstractSet[tuple[str, Expression]], definitions: Mapping[str, Definition]
) -> str | None:
    """The innermost scope around a place in which something is known to be assigned; None where it is in none."""
    scopes = [*(outer.id for outer in around(definitions, scope)), FILE]
    return next((outer for outer in scopes if (outer, target) in known), None)


def filled_outside(
    assignments: Sequence[Assignment], definitions: Mapping[str, Definition]
) -> Mapping[str, Mapping[str, Sequence[tuple[str, Expression]]]]:
    """What functions put into collections of the scopes around them: by scope and name, where it is put and what."""
    known = {(one.scope, one.target) for one in assignments if isinstance(one.target, Name)}
    found: dict[str, dict[str, list[tuple[str, Expression]]]] = {}
    for one in assignments:
        target = whole(one.target)
        if isinstance(one.target, Element) and isinstance(target, Name) and not isinstance(one.value, Unknown):
            scope = _declaring(one.scope, target, known, definitions)
            if scope not in {None, one.scope}:
                put = found.setdefault(scope or FILE, {}).setdefault(target.text, [])
                put.append((one.scope, Collection((one.value,))))
    return found


def root_of(target: Expression) -> str:
    """The name that an expression begins with; "" where it begins with none."""
    begin = head(target)
    return begin.text if isinstance(begin, Name | NameOrCall) else ""
