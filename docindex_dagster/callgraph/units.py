"""Indexed IR of a file: definitions and statements by scope and name, and the contents of its collections."""

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
    collection_of,
    head,
    path_of,
)
from docindex_dagster.callgraph.languages import rules_of
from docindex_dagster.callgraph.languages.lua import assigned_fields
from docindex_dagster.callgraph.nesting import CLASSES, FUNCTIONS, around, holder
from docindex_dagster.callgraph.rules import Rules

_CALL_ORDER = {"call": 0, "read": 1, "new": 2, "macro": 3}
# Methods that add their last argument to a collection.
_ADDING_NAMES = """
    append add push put set insert unshift register subscribe extend appendleft push_back emplace_back Add enqueue offer
    addLast addFirst push_front emplace setdefault << on connect store prepend
"""
_ADDING = frozenset(_ADDING_NAMES.split())


class StatementPosition(Protocol):
    """The position of a statement: the line in the file and the byte in its text."""

    @property
    def line(self) -> int:
        """Line number, starting at 1."""

    @property
    def byte(self) -> int:
        """Byte offset, starting at 0."""


class Chunks:
    """The chunks of a file: their ids, first lines and, if known, start bytes."""

    def __init__(self, ids: Sequence[str], lines: Sequence[int], starts: Sequence[int | None]) -> None:
        self.ids = ids
        known = [byte for byte in starts if byte is not None]
        self._has_bytes = len(known) == len(starts)
        self._starts = known if self._has_bytes else lines

    def at(self, place: StatementPosition) -> str:
        """Return the id of the chunk that contains a position."""
        found = bisect_right(self._starts, place.byte if self._has_bytes else place.line)
        return self.ids[max(0, found - 1)]


class Unit:
    """A file with its indexed IR.

    Args:
        path: path of the file.
        language: language of the file; `ir.language` takes precedence.
        ir: intermediate representation of the file.
        is_test: whether the file contains tests.
        chunks: chunks of the file.
    """

    def __init__(self, path: str, language: str, ir: FileIR, *, is_test: bool, chunks: Chunks) -> None:
        language = ir.language or language
        rules = rules_of(language)
        hooks = rules.hooks
        ir = hooks.prepare(ir) if hooks.prepare is not None else ir
        self.path, self.language, self.rules = path, language, rules
        self.is_test, self.chunks, self.ir = is_test, chunks, ir
        self.namespace = ir.namespace or (hooks.namespace(path) if hooks.namespace is not None else "")
        self.definitions = {one.id: one for one in ir.definitions}
        placed = hooks.place(self.definitions) if hooks.place is not None else self.definitions.values()
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
        """Index the values of variables, attributes and parameters."""
        rules, ir = self.rules, self.ir
        self.parameters = grouped((one.scope, one) for one in ir.parameters)  # by function
        self.contents = [*contents_of(self.calls)]  # values that calls add to collections
        assignments = [*map(unpacked, ir.assignments)] if rules.has_namespaces else ir.assignments
        attributed = [*filled([*assignments, *self.contents], self.definitions)]
        is_included = rules.sharing == "included"
        bound = (
            [*_lifted(assignments, self.definitions), *contents_outside(self.contents)] if is_included else attributed
        )
        # Declared and assigned values of variables and fields.
        self.bindings = _by_scope(
            (one, one.target.text) for one in bound if one.role == "bind" and isinstance(one.target, Name)
        )
        # C: values stored in variables declared elsewhere; and everything stored in fields, variables and templates.
        self.stores = _by_scope(
            (one, one.target.text) for one in bound if one.role == "store" and isinstance(one.target, Name)
        )
        self.stored = [one for one in bound if one.role != "test"] if is_included else []
        # Values assigned to attributes of any object, by written path; and types that a path is tested for.
        self.dotted = _by_scope((one, path_of(one.target)) for one in bound if isinstance(one.target, Attribute))
        self.tested = _by_scope((one, path_of(one.target)) for one in bound if one.role == "test")
        self.roots = _roots(bound)  # first names of assigned or tested paths, by scope
        self.attributes = _attributes(attributed, self.definitions, rules)  # by class and name: scopes and values
        self.assigned = _assigned(ir.assignments, rules)  # assignments to attributes of other objects
        named: list[Assignment | Parameter] = [*bound, *ir.parameters]
        self.declared = [one for one in named if isinstance(one.value, Instance)]
        # Values that functions add to collections of outer scopes.
        self.filled = filled_outside(ir.assignments, self.definitions) if rules.has_tables else {}

    def _import(self) -> None:
        """Index imports and re-exports."""
        found = [one if one.is_passed_on else _with_scope(one, self.rules, self.definitions) for one in self.ir.imports]
        self.left_out = _left_out(found)
        found = [one for one in found if one.kind != "left out"]
        own, passed_on = ([one for one in found if one.is_passed_on is passed] for passed in (False, True))
        self.imported = [*own, *passed_on]
        self.imports = grouped((one.name or one.module, one) for one in own if one.kind == "name")  # by the name here
        self.wildcards = [one for one in own if one.kind != "name"]
        self.reexports = {one.name: one for one in passed_on if one.kind == "name"}
        self.reexported = [one.module for one in passed_on if one.kind != "name"]  # modules re-exported completely

    @property
    def statements(self) -> int:
        """The number of statements, an estimate of memory use: about 600 bytes each."""
        ir = self.ir
        return 1 + sum(map(len, (ir.definitions, ir.calls, ir.assignments, ir.parameters, ir.returns)))

    @cached_property
    def directives(self) -> Sequence[str]:
        """The namespaces in the `using` directives of a C++ file."""
        return [one.module.replace("::", ".") for one in self.wildcards if one.kind == "directive"]

    def decorated_by(self, identifier: str) -> Sequence[Expression]:
        """Return the decorators of a definition, outermost first."""
        return self._decorated.get(identifier, ())

    @cached_property
    def _decorated(self) -> Mapping[str, Sequence[Expression]]:
        return grouped((one.decorated, one.value) for one in self.decorators)

    @cached_property
    def literals(self) -> Mapping[str, AbstractSet[str]]:
        """The last names of all parents of definitions, by the rest of their qualified names."""
        found: dict[str, set[str]] = defaultdict(set)
        for qualified in self.children:
            around, _, name = qualified.rpartition(".")
            found[around].add(name)
        return dict(found)

    @cached_property
    def free_methods(self) -> Mapping[str, Sequence[Definition]]:
        """The top-level classes of a file by the names of their methods."""
        classes = (one for one in self.definitions.values() if one.kind == "class" and not one.parent)
        return grouped((name, one) for one in classes for name in self.children.get(one.qualified, ()))

    @cached_property
    def packages(self) -> frozenset[str]:
        """The first names of modules imported with a dotted path."""
        return frozenset(module.partition(".")[0] for module in self.imports if "." in module)

    @cached_property
    def _parameter_names(self) -> Mapping[str, frozenset[str]]:
        return {scope: frozenset(one.name for one in listed) for scope, listed in self.parameters.items()}

    def parameter_names(self, function: str) -> frozenset[str]:
        """Return the names of the parameters of a function."""
        return self._parameter_names.get(function, frozenset())

    def has_parameter(self, function: str, name: str) -> bool:
        """Return whether a function has a parameter with this name."""
        return name in self._parameter_names.get(function, ())

    def bindings_of(self, scope: str, name: str) -> Sequence[Expression]:
        """Return the declared and assigned values of a name in a scope, without enclosing scopes."""
        names = self.bindings.get(scope)
        return names.get(name, ()) if names is not None else ()

    def full_name(self, qualified: str) -> str:
        """Prefix a qualified name with the namespace of the file."""
        return f"{self.namespace}.{qualified}" if self.namespace and qualified else qualified or self.namespace

    def same_named(self, qualified: str) -> Iterator[Definition]:
        """Yield the definitions with a qualified name, in order; their ids number them."""
        for number in count(1):
            definition = self.definitions.get(qualified if number == 1 else f"{qualified}~{number}")
            if definition is None:
                return
            yield definition

    def around(self, scope: str) -> Iterator[Definition]:
        """Yield the definitions that enclose a scope, innermost first."""
        return around(self.definitions, scope)

    def children_of(self, qualified: str, name: str) -> Sequence[Definition]:
        """Return the definitions with a name nested in a definition."""
        named = self.children.get(qualified)
        return named.get(name, ()) if named is not None else ()

    def holder(self, scope: str) -> tuple[str, bool]:
        """Return the qualified name of the class, constructor or literal of `this`, and whether it is a literal."""
        return holder(self.definitions, scope)

    def class_around(self, scope: str) -> Definition | None:
        """Return the innermost class that encloses a scope."""
        return next((around for around in self.around(scope) if around.kind in CLASSES), None)


def _assigned(assignments: Iterable[Assignment], rules: Rules) -> Sequence[Assignment]:
    """Return the assignments to fields from which their types are inferred."""
    if rules.has_tables:
        return assigned_fields(assignments)
    return [one for one in assignments if _is_of_another(one)] if rules.infers_fields else ()


_Item = TypeVar("_Item")


def grouped(items: Iterable[tuple[str, _Item]]) -> Mapping[str, Sequence[_Item]]:
    """Group the second items of pairs by the first, keeping their order."""
    found: defaultdict[str, list[_Item]] = defaultdict(list)
    for key, item in items:
        found[key].append(item)
    return dict(found)


def _by_scope(named: Iterable[tuple[Assignment, str]]) -> dict[str, dict[str, list[Expression]]]:
    """Group values by scope, then by name."""
    found: dict[str, dict[str, list[Expression]]] = {}
    for one, name in named:
        found.setdefault(one.scope, {}).setdefault(name, []).append(one.value)
    return found


def _left_out(imports: Iterable[Import]) -> frozenset[tuple[str, str, str]]:
    """Return scope, module and name of each name excluded from a wildcard import."""
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
    """Move the name of a `typedef struct {…} name` from the scope of the struct to the enclosing scope."""
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
    """Return whether an assignment targets an attribute of another object than `this`."""
    target = collection_of(one.target)
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
    """Index assignments to attributes of `this` in methods."""
    found: dict[str, dict[str, list[tuple[str, Expression]]]] = {}
    for one in assignments if not rules.has_tables else ():
        target = one.target
        if not isinstance(target, Attribute) or not isinstance(target.of, Name) or one.role == "test":
            continue
        is_own = target.of is THIS or target.of.text in rules.self_names
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
    """Group bases by the id of the class, in lookup order: mixins first, the last mixin before the others."""
    mixins = [one for one in bases if one.kind == "mixin"]
    others = [one for kind in _BASE_ORDER for one in bases if one.kind == kind]
    return grouped((_class_of(one, definitions), one) for one in (*reversed(mixins), *others))


def _class_of(base: Base, definitions: Mapping[str, Definition]) -> str:
    """Return the id of the derived class: the named one or the enclosing one."""
    inner = f"{base.scope}.{base.cls}"
    return inner if inner in definitions else base.cls or base.scope


def _with_scope(imported: Import, rules: Rules, definitions: Mapping[str, Definition]) -> Import:
    """Move an import to the innermost enclosing definition that has its own imports."""
    modules = {"module"} if rules.has_module_paths or rules.has_path_imports else set()
    kinds = modules | FUNCTIONS if rules.has_local_imports else modules
    outer = around(definitions, imported.scope) if kinds else ()
    importing = next((one for one in outer if one.kind in kinds), None)
    if importing is None:
        return imported._replace(scope=FILE) if imported.scope else imported
    # Nested definitions refer to a function by its qualified name.
    return imported._replace(scope=importing.qualified if importing.kind in FUNCTIONS else importing.id)


def contents_of(calls: Iterable[CallSite]) -> Iterator[Assignment]:
    """Yield calls that add to a collection as assignments to an element of it."""
    for call in calls:
        callee, added = call.callee, call.arguments[-1] if call.arguments else None
        if call.kind != "call" or added is None or not isinstance(callee, Attribute) or callee.name not in _ADDING:
            continue
        if not added.is_block and not isinstance(added.value, Unknown | Literal | Function):
            yield Assignment("bind", call.scope, Element(callee.of), added.value, call.line, call.byte)


def contents_outside(contents: Iterable[Assignment]) -> Iterator[Assignment]:
    """Yield element assignments as stores to a name declared elsewhere, for languages with implicit `this`."""
    for one in map(unpacked, contents):
        if isinstance(one.target, Name | Attribute):
            yield one._replace(role="store")


def unpacked(one: Assignment) -> Assignment:
    """Turn an assignment to a (nested) element into an assignment of a collection."""
    target, value = one.target, one.value
    while isinstance(target, Element):
        target, value = target.of, Collection((value,))
    return one if target is one.target else one._replace(target=target, value=value)


def filled(assignments: Sequence[Assignment], definitions: Mapping[str, Definition]) -> Iterator[Assignment]:
    """Turn assignments to elements into assignments of collections, if the target is a known attribute or variable."""
    known = {(one.scope, one.target) for one in assignments}
    for one in assignments:
        if not isinstance(one.target, Element):
            yield one
            continue
        target = collection_of(one.target)
        is_own = isinstance(target, Attribute) and root_of(target) == "this"
        scope = one.scope if is_own else _declaring(one.scope, target, known, definitions)
        if scope is not None:
            yield Assignment("bind", scope, target, Collection((one.value,)), one.line, one.byte)


def _declaring(
    scope: str, target: Expression, known: AbstractSet[tuple[str, Expression]], definitions: Mapping[str, Definition]
) -> str | None:
    """Return the innermost enclosing scope that assigns the target; None if there is none."""
    scopes = [*(outer.id for outer in around(definitions, scope)), FILE]
    return next((outer for outer in scopes if (outer, target) in known), None)


def filled_outside(
    assignments: Sequence[Assignment], definitions: Mapping[str, Definition]
) -> Mapping[str, Mapping[str, Sequence[tuple[str, Expression]]]]:
    """Index values that functions add to collections of enclosing scopes, by scope and name, with the adding scope."""
    known = {(one.scope, one.target) for one in assignments if isinstance(one.target, Name)}
    found: dict[str, dict[str, list[tuple[str, Expression]]]] = {}
    for one in assignments:
        target = collection_of(one.target)
        if isinstance(one.target, Element) and isinstance(target, Name) and not isinstance(one.value, Unknown):
            scope = _declaring(one.scope, target, known, definitions)
            if scope not in {None, one.scope}:
                added = found.setdefault(scope or FILE, {}).setdefault(target.text, [])
                added.append((one.scope, Collection((one.value,))))
    return found


def root_of(target: Expression) -> str:
    """Return the first name of an expression; "" if it does not start with a name."""
    start = head(target)
    return start.text if isinstance(start, Name | NameOrCall) else ""
