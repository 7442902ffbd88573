"""The edges of one file: what it defines, imports, calls, inherits, refers to, uses, decorates, tests; its sections."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from docindex_dagster.callgraph.ir import (
    FILE,
    Assignment,
    Attribute,
    Base,
    CallSite,
    Decorator,
    Definition,
    Expression,
    Function,
    Implicit,
    Import,
    Name,
    NameOrCall,
    Parameter,
    last_name,
)
from docindex_dagster.callgraph.nesting import CLASSES, TABLE
from docindex_dagster.callgraph.resolver.queries import Queries
from docindex_dagster.callgraph.resolver.values import CONFIDENCE, NAMES, Value
from docindex_dagster.callgraph.units import Unit
from docindex_dagster.graph.source_graph import EXTERNAL, FROM_PARSE, PACKAGE, UNRESOLVED, Node, Triple

_SYMBOLS = frozenset({"function", "class"})
OVERRIDING = "overrides what is called"
_NAMING = frozenset({Name, NameOrCall, Implicit, Attribute, Function})
_Place = tuple[str, str]  # a node and its type
_Statement = Definition | Import | CallSite | Decorator | Base | Assignment | Parameter


class _Evidence(NamedTuple):
    """Where the source says so. A fact is evidence as well."""

    chunk: str
    line: int


@dataclass(eq=False)
class FileEdges:
    """Collects the nodes and edges of a file; of edges that say the same the first is kept."""

    resolver: Queries
    unit: Unit
    source: str
    nodes: dict[str, Node] = field(default_factory=dict)
    triples: dict[tuple[str, str, str], Triple] = field(default_factory=dict)
    _scopes: dict[str, _Place] = field(default_factory=dict)

    def collect(self) -> None:
        """Read the whole file."""
        self.define()
        for imported in self.unit.imported:
            self._import(imported)
        for call in self.unit.calls:
            self._call(call)
        for decorator in self.unit.decorators:
            self._decorator(decorator)
        for definition in self.unit.definitions.values():
            if definition.kind in CLASSES and definition.kind != TABLE:
                self._bases(definition)
        for declared in self.unit.declared:
            self._declared(declared)

    def define(self) -> None:
        """What the file defines."""
        for definition in self.unit.definitions.values():
            if definition.kind != TABLE:
                self._definition(definition)

    def import_as_written(self, modules: Sequence[str], line: int) -> None:
        """The imports of a file whose language has no facts: to where they lead is not known."""
        reason = "imports of this language are not followed"
        for module in modules:
            target = f"{UNRESOLVED}:{module}", UNRESOLVED
            at = _Evidence(self.unit.chunks.ids[0], line)
            self._add((self.unit.path, "file"), "imports", target, at, reason=reason)

    def sections(self, row: Mapping[str, Any]) -> None:
        """The file, or the section around it, has each section of a chunk's heading path."""
        headings = row["heading_path"] or ()
        path, chunk = self.unit.path, row["chunk_id"]
        ids = [path, *(f"{path}#{' > '.join(headings[: depth + 1])}" for depth in range(len(headings)))]
        for (parent, child), heading in zip(pairwise(ids), headings, strict=True):
            self.nodes.setdefault(child, Node(child, "section", heading, self.source, path, chunk))
            kind = "file" if parent == path else "section"
            self._add((parent, kind), "has_section", (child, "section"), _Evidence(chunk, row["start_line"]))

    def _definition(self, definition: Definition) -> None:
        unit = self.unit
        at, chunk = definition, unit.chunks.at(definition)
        node, kind = self._symbol(unit, definition)
        self.nodes[node] = Node(node, kind, definition.name, self.source, unit.path, chunk)
        self._add((unit.path, "file"), "defines", (node, kind), at)
        self._add((node, kind), "defined_in", (unit.path, "file"), at)
        parent = unit.definitions.get(definition.parent)
        if parent is not None and parent.kind != TABLE:
            self._add(self._symbol(unit, parent), "contains", (node, kind), at)

    def _import(self, one: Import) -> None:
        here, whole = (self.unit.path, "file"), one._replace(scope=FILE, member="")
        values = self.resolver.import_targets(
            self.unit, one._replace(scope=FILE, member=one.member if one.kind == "name" else "")
        )
        for value in values:
            if value.kind == "module" and value.name == "" and value.path.endswith("/"):
                self._add(here, "imports", (value.path, PACKAGE), one, value=value)
            elif value.kind == "external":
                # A file of the source may offer what comes from elsewhere.
                modules = [found for found in self.resolver.import_targets(self.unit, whole) if found.kind == "module"]
                outside = (f"{EXTERNAL}:{one.module.lstrip('.')}", EXTERNAL)
                for target in [(each.path, "file") for each in modules if not each.path.endswith("/")] or [outside]:
                    self._add(here, "imports", target, one, value=value)
            elif value.path and value.path != self.unit.path:
                self._add(here, "imports", (value.path, "file"), one, value=value)
                if value.kind in _SYMBOLS:
                    self._add(here, "imports", self._target(value), one, value=value)
        if not values:
            missing = f"{UNRESOLVED}:{'.'.join(filter(None, (one.module, one.member)))}"
            self._add(here, "imports", (missing, UNRESOLVED), one, reason="no such name in what is imported")

    def _call(self, call: CallSite) -> None:
        targets = self.resolver.targets(self.unit, call)
        caller = self._scope(call.scope)
        for value in targets:
            self._add(caller, "calls", self._target(value), call, value=value)
            if value.kind in _SYMBOLS:
                self._called(call, value)
        overriding = self.resolver.may_reach(call, targets)
        for value in overriding:
            self._add(caller, "may_call", self._target(value), call, value=value, among=len(overriding))
        if not targets and call.kind != "read":
            target = f"{UNRESOLVED}:{last_name(call.callee) or 'computed'}", UNRESOLVED
            if (caller[0], "calls", target[0]) not in self.triples:
                self._add(caller, "calls", target, call, reason=self.resolver.reason(self.unit, call))
        for argument in call.arguments:
            if type(argument.value) in _NAMING:
                self._refer(call, argument.value)

    def _called(self, call: CallSite, value: Value) -> None:
        """What else follows from a call that reaches a symbol of the source."""
        owner = self.unit.class_around(call.scope) if value.kind == "class" else None
        if owner is not None and not self._is(owner, value):
            self._add(self._symbol(self.unit, owner), "uses", self._target(value), call, value=value)
        if self.unit.is_test and call.scope and not self.resolver.program.units[value.path].is_test:
            self._add(self._scope(call.scope), "tests", self._target(value), call, value=value)

    def _refer(self, call: CallSite, expression: Expression) -> None:
        """A reference to what an argument names, where anything in the source has this name."""
        name = last_name(expression)
        if name not in self.unit.imports and not self.resolver.program.named.has(self.unit.rules.family, name):
            return
        for value in self.resolver.values(self.unit, call.scope, expression):
            if value.kind in _SYMBOLS:
                self._add(self._scope(call.scope), "references", self._target(value), call, value=value)

    def _decorator(self, one: Decorator) -> None:
        decorated = self.unit.definitions.get(one.decorated)
        for value in self.resolver.targets(self.unit, one):
            if value.kind in _SYMBOLS and decorated is not None:
                target = self._symbol(self.unit, decorated)
                self._add(self._target(value), "decorates", target, one, value=value)
                self._add(self._scope(one.scope), "calls", self._target(value), one, value=value)

    def _bases(self, definition: Definition) -> None:
        for base, values in self.resolver.bases(self.unit, definition):
            if base.kind == "companion" and self.unit.rules.has_companions:
                continue  # a type that is asked for, not inherited
            for value in values:
                if value.kind not in {"class", "external"}:
                    continue
                kind = "implements" if base.kind == "implements" or self._is_interface(value) else "inherits"
                self._add(self._symbol(self.unit, definition), kind, self._target(value), base, value=value)

    def _declared(self, one: Assignment | Parameter) -> None:
        """A class uses the types that it holds and takes; a function refers to those that it takes."""
        objects = [
            found
            for value in self.resolver.values(self.unit, one.scope, one.value)
            for found in (value, *value.held)
            if found.kind == "object"
        ]
        owner = self.unit.class_around(one.scope) if objects else None
        for found in objects:
            target = self._target(found)
            if owner is None:
                self._add(self._scope(one.scope), "references", target, one, value=found)
            elif not self._is(owner, found):
                self._add(self._symbol(self.unit, owner), "uses", target, one, value=found)

    def _is(self, definition: Definition, value: Value) -> bool:
        return (self.unit.path, definition.id) == (value.path, value.name)

    def _is_interface(self, value: Value) -> bool:
        if value.kind != "class":
            return False
        unit = self.resolver.program.units[value.path]
        return unit.definitions[value.name].kind in {"interface", "trait"} and unit.language != "rust"

    def _scope(self, scope: str) -> _Place:
        place = self._scopes.get(scope)
        if place is None:
            definition = self.unit.definitions.get(scope)
            place = (self.unit.path, "file") if definition is None else self._symbol(self.unit, definition)
            self._scopes[scope] = place
        return place

    def _target(self, value: Value) -> _Place:
        if value.kind in {"external", "external object"}:
            return f"{EXTERNAL}:{value.name}", EXTERNAL
        unit = self.resolver.program.units[value.path]
        return self._symbol(unit, unit.definitions[value.name])

    @staticmethod
    def _symbol(unit: Unit, definition: Definition) -> _Place:
        return f"{unit.path}::{definition.id}", definition.kind

    def _add(
        self,
        subject: _Place,
        predicate: str,
        target: _Place,
        at: "_Statement | _Evidence",
        *,
        value: Value | None = None,
        reason: str = "",
        among: int = 0,
    ) -> None:
        key = (subject[0], predicate, target[0])
        if key in self.triples:
            return
        how, confidence = (NAMES[value.resolution], CONFIDENCE[value.resolution]) if value else (FROM_PARSE, 1.0)
        if among:
            how, confidence = f"{OVERRIDING}, one of {among}", round(confidence / among, 2)
        if reason:
            how, confidence = f"{UNRESOLVED}: {reason}", 0.0
        chunk = at.chunk if isinstance(at, _Evidence) else self.unit.chunks.at(at)
        self.triples[key] = Triple(
            *subject, predicate, *target, self.source, self.unit.path, chunk, at.line, confidence, how
        )
