"""Edges of one file: definitions, imports, calls, base classes, references, uses, decorators, tests and sections."""

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
_NAME_EXPRESSIONS = frozenset({Name, NameOrCall, Implicit, Attribute, Function})
_TypedNode = tuple[str, str]  # a node and its type
_Statement = Definition | Import | CallSite | Decorator | Base | Assignment | Parameter


class _Evidence(NamedTuple):
    """Location in the source that states an edge. A fact serves as evidence, too."""

    chunk: str
    line: int


@dataclass(eq=False)
class FileEdges:
    """Collector of a file's nodes and edges; of duplicate edges, it keeps the first."""

    resolver: Queries
    unit: Unit
    source: str
    nodes: dict[str, Node] = field(default_factory=dict)
    triples: dict[tuple[str, str, str], Triple] = field(default_factory=dict)
    _scopes: dict[str, _TypedNode] = field(default_factory=dict)

    def collect(self) -> None:
        """Collect all edges of the file."""
        self.define()
        for imported in self.unit.imported:
            self._add_import(imported)
        for call in self.unit.calls:
            self._add_call(call)
        for decorator in self.unit.decorators:
            self._add_decorator(decorator)
        for definition in self.unit.definitions.values():
            if definition.kind in CLASSES and definition.kind != TABLE:
                self._add_bases(definition)
        for declared in self.unit.declared:
            self._add_declared_types(declared)

    def define(self) -> None:
        """Collect the definitions of the file."""
        for definition in self.unit.definitions.values():
            if definition.kind != TABLE:
                self._add_definition(definition)

    def import_as_written(self, modules: Sequence[str], line: int) -> None:
        """Collect the imports of a file whose language has no facts; their targets are unknown."""
        reason = "imports of this language are not followed"
        for module in modules:
            target = f"{UNRESOLVED}:{module}", UNRESOLVED
            at = _Evidence(self.unit.chunks.ids[0], line)
            self._add((self.unit.path, "file"), "imports", target, at, reason=reason)

    def sections(self, row: Mapping[str, Any]) -> None:
        """Nest each section of a chunk's heading path in the file or the section around it."""
        headings = row["heading_path"] or ()
        path, chunk = self.unit.path, row["chunk_id"]
        ids = [path, *(f"{path}#{' > '.join(headings[: depth + 1])}" for depth in range(len(headings)))]
        for (parent, child), heading in zip(pairwise(ids), headings, strict=True):
            self.nodes.setdefault(child, Node(child, "section", heading, self.source, path, chunk))
            kind = "file" if parent == path else "section"
            self._add((parent, kind), "has_section", (child, "section"), _Evidence(chunk, row["start_line"]))

    def _add_definition(self, definition: Definition) -> None:
        unit = self.unit
        at, chunk = definition, unit.chunks.at(definition)
        node, kind = self._symbol(unit, definition)
        self.nodes[node] = Node(node, kind, definition.name, self.source, unit.path, chunk)
        self._add((unit.path, "file"), "defines", (node, kind), at)
        self._add((node, kind), "defined_in", (unit.path, "file"), at)
        parent = unit.definitions.get(definition.parent)
        if parent is not None and parent.kind != TABLE:
            self._add(self._symbol(unit, parent), "contains", (node, kind), at)

    def _add_import(self, imported: Import) -> None:
        here, module = (self.unit.path, "file"), imported._replace(scope=FILE, member="")
        values = self.resolver.import_targets(
            self.unit, imported._replace(scope=FILE, member=imported.member if imported.kind == "name" else "")
        )
        for value in values:
            if value.kind == "module" and value.name == "" and value.path.endswith("/"):
                self._add(here, "imports", (value.path, PACKAGE), imported, value=value)
            elif value.kind == "external":
                # A file of the source may re-export an external name.
                modules = [found for found in self.resolver.import_targets(self.unit, module) if found.kind == "module"]
                outside = (f"{EXTERNAL}:{imported.module.lstrip('.')}", EXTERNAL)
                for target in [(each.path, "file") for each in modules if not each.path.endswith("/")] or [outside]:
                    self._add(here, "imports", target, imported, value=value)
            elif value.path and value.path != self.unit.path:
                self._add(here, "imports", (value.path, "file"), imported, value=value)
                if value.kind in _SYMBOLS:
                    self._add(here, "imports", self._target(value), imported, value=value)
        if not values:
            missing = f"{UNRESOLVED}:{'.'.join(filter(None, (imported.module, imported.member)))}"
            self._add(here, "imports", (missing, UNRESOLVED), imported, reason="no such name in what is imported")

    def _add_call(self, call: CallSite) -> None:
        targets = self.resolver.targets(self.unit, call)
        caller = self._scope(call.scope)
        for value in targets:
            self._add(caller, "calls", self._target(value), call, value=value)
            if value.kind in _SYMBOLS:
                self._add_call_effects(call, value)
        overriding = self.resolver.may_reach(call, targets)
        for value in overriding:
            self._add(caller, "may_call", self._target(value), call, value=value, among=len(overriding))
        if not targets and call.kind != "read":
            target = f"{UNRESOLVED}:{last_name(call.callee) or 'computed'}", UNRESOLVED
            if (caller[0], "calls", target[0]) not in self.triples:
                self._add(caller, "calls", target, call, reason=self.resolver.reason(self.unit, call))
        for argument in call.arguments:
            if type(argument.value) in _NAME_EXPRESSIONS:
                self._add_references(call, argument.value)

    def _add_call_effects(self, call: CallSite, value: Value) -> None:
        """Add the `uses` and `tests` edges of a call that reaches a symbol of the source."""
        owner = self.unit.class_around(call.scope) if value.kind == "class" else None
        if owner is not None and not self._is_same(owner, value):
            self._add(self._symbol(self.unit, owner), "uses", self._target(value), call, value=value)
        if self.unit.is_test and call.scope and not self.resolver.program.units[value.path].is_test:
            self._add(self._scope(call.scope), "tests", self._target(value), call, value=value)

    def _add_references(self, call: CallSite, expression: Expression) -> None:
        """Add references to the symbols that an argument names, if the source defines the name."""
        name = last_name(expression)
        if name not in self.unit.imports and not self.resolver.program.named.has(self.unit.rules.family, name):
            return
        for value in self.resolver.values(self.unit, call.scope, expression):
            if value.kind in _SYMBOLS:
                self._add(self._scope(call.scope), "references", self._target(value), call, value=value)

    def _add_decorator(self, decorator: Decorator) -> None:
        decorated = self.unit.definitions.get(decorator.decorated)
        for value in self.resolver.targets(self.unit, decorator):
            if value.kind in _SYMBOLS and decorated is not None:
                target = self._symbol(self.unit, decorated)
                self._add(self._target(value), "decorates", target, decorator, value=value)
                self._add(self._scope(decorator.scope), "calls", self._target(value), decorator, value=value)

    def _add_bases(self, definition: Definition) -> None:
        for base, values in self.resolver.bases(self.unit, definition):
            if base.kind == "companion" and self.unit.rules.has_companions:
                continue  # a companion is requested, not inherited
            for value in values:
                if value.kind not in {"class", "external"}:
                    continue
                kind = "implements" if base.kind == "implements" or self._is_interface(value) else "inherits"
                self._add(self._symbol(self.unit, definition), kind, self._target(value), base, value=value)

    def _add_declared_types(self, declared: Assignment | Parameter) -> None:
        """Add the declared types: a class uses the types it holds and takes, a function refers to those it takes."""
        objects = [
            found
            for value in self.resolver.values(self.unit, declared.scope, declared.value)
            for found in (value, *value.held)
            if found.kind == "object"
        ]
        owner = self.unit.class_around(declared.scope) if objects else None
        for found in objects:
            target = self._target(found)
            if owner is None:
                self._add(self._scope(declared.scope), "references", target, declared, value=found)
            elif not self._is_same(owner, found):
                self._add(self._symbol(self.unit, owner), "uses", target, declared, value=found)

    def _is_same(self, definition: Definition, value: Value) -> bool:
        return (self.unit.path, definition.id) == (value.path, value.name)

    def _is_interface(self, value: Value) -> bool:
        if value.kind != "class":
            return False
        unit = self.resolver.program.units[value.path]
        return unit.definitions[value.name].kind in {"interface", "trait"} and unit.language != "rust"

    def _scope(self, scope: str) -> _TypedNode:
        node = self._scopes.get(scope)
        if node is None:
            definition = self.unit.definitions.get(scope)
            node = (self.unit.path, "file") if definition is None else self._symbol(self.unit, definition)
            self._scopes[scope] = node
        return node

    def _target(self, value: Value) -> _TypedNode:
        if value.kind in {"external", "external object"}:
            return f"{EXTERNAL}:{value.name}", EXTERNAL
        unit = self.resolver.program.units[value.path]
        return self._symbol(unit, unit.definitions[value.name])

    @staticmethod
    def _symbol(unit: Unit, definition: Definition) -> _TypedNode:
        return f"{unit.path}::{definition.id}", definition.kind

    def _add(
        self,
        subject: _TypedNode,
        predicate: str,
        target: _TypedNode,
        at: "_Statement | _Evidence",
        *,
        value: Value | None = None,
        reason: str = "",
        among: int = 0,
    ) -> None:
        key = (subject[0], predicate, target[0])
        if key in self.triples:
            return
        resolution, confidence = (NAMES[value.resolution], CONFIDENCE[value.resolution]) if value else (FROM_PARSE, 1.0)
        if among:
            resolution, confidence = f"{OVERRIDING}, one of {among}", round(confidence / among, 2)
        if reason:
            resolution, confidence = f"{UNRESOLVED}: {reason}", 0.0
        chunk = at.chunk if isinstance(at, _Evidence) else self.unit.chunks.at(at)
        self.triples[key] = Triple(
            *subject, predicate, *target, self.source, self.unit.path, chunk, at.line, confidence, resolution
        )
