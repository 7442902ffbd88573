"""The edges of one file: what it defines, imports, calls, inherits, refers to, uses, decorates, tests; its sections."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from docindex_dagster.code.expressions import SEPARATOR
from docindex_dagster.graph.resolve import Resolver
from docindex_dagster.graph.triple import EXTERNAL, FROM_PARSE, PACKAGE, UNRESOLVED, Node, Triple
from docindex_dagster.graph.units import CLASSES, Definition, Import, Reference, Unit
from docindex_dagster.graph.values import CONFIDENCE, NAMES, Kind, Value

_SYMBOLS = frozenset({Kind.FUNCTION, Kind.CLASS})
_Place = tuple[str, str]  # a node and its type


class _Evidence(NamedTuple):
    """Where the source says so. A fact is evidence as well."""

    chunk: str
    line: int


@dataclass(eq=False)
class FileEdges:
    """Collects the nodes and edges of a file; of edges that say the same the first is kept."""

    resolver: Resolver
    unit: Unit
    source: str
    nodes: dict[str, Node] = field(default_factory=dict)
    triples: dict[tuple[str, str, str], Triple] = field(default_factory=dict)

    def collect(self) -> None:
        """Read the whole file."""
        self.define()
        for reference in self.unit.imported:
            self._import(reference)
        for reference in self.unit.calls:
            self._call(reference)
        for reference in self.unit.decorators:
            self._decorator(reference)
        for definition in self.unit.definitions.values():
            if definition.kind in CLASSES:
                self._bases(definition)
        for reference in self.unit.declared:
            self._declared(reference)

    def define(self) -> None:
        """What the file defines."""
        for definition in self.unit.definitions.values():
            self._definition(definition)

    def import_as_written(self, modules: Sequence[str], line: int) -> None:
        """The imports of a file whose language has no facts: to where they lead is not known."""
        reason = "imports of this language are not followed"
        for module in modules:
            target = f"{UNRESOLVED}:{module}", UNRESOLVED
            at = _Evidence(self.unit.first_chunk, line)
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
        at = _Evidence(unit.chunks[definition.id], definition.line)
        node, kind = self._symbol(unit, definition)
        self.nodes[node] = Node(node, kind, definition.name, self.source, unit.path, at.chunk)
        self._add((unit.path, "file"), "defines", (node, kind), at)
        self._add((node, kind), "defined_in", (unit.path, "file"), at)
        parent = unit.definitions.get(definition.parent)
        if parent is not None:
            self._add(self._symbol(unit, parent), "contains", (node, kind), at)

    def _import(self, reference: Reference) -> None:
        module, _, name = reference.value.partition(SEPARATOR)
        here = self.unit.path, "file"
        values = self.resolver.imported(
            self.unit, Import(module, "" if reference.name == "*" else name, reference.line)
        )
        for value in values:
            if value.kind is Kind.MODULE and value.name == "" and value.path.endswith("/"):
                self._add(here, "imports", (value.path, PACKAGE), reference, value=value)
            elif value.kind is Kind.EXTERNAL:
                self._add(here, "imports", (f"{EXTERNAL}:{module.lstrip('.')}", EXTERNAL), reference, value=value)
            elif value.path and value.path != self.unit.path:
                self._add(here, "imports", (value.path, "file"), reference, value=value)
                if value.kind in _SYMBOLS:
                    self._add(here, "imports", self._target(value), reference, value=value)
        if not values:
            missing = f"{UNRESOLVED}:{'.'.join(filter(None, (module, name)))}"
            reason = "no such name in what is imported"
            self._add(here, "imports", (missing, UNRESOLVED), reference, reason=reason)

    def _call(self, reference: Reference) -> None:
        targets = self.resolver.targets(self.unit, reference)
        caller = self._scope(reference.scope)
        for value in targets:
            self._add(caller, "calls", self._target(value), reference, value=value)
            if value.kind in _SYMBOLS:
                self._called(reference, value)
        if not targets:
            name = reference.name.rstrip("()@[]").rpartition(".")[2] or reference.name
            reason = self.resolver.reason(self.unit, reference)
            self._add(caller, "calls", (f"{UNRESOLVED}:{name}", UNRESOLVED), reference, reason=reason)
        for argument in reference.arguments:
            given = argument.rpartition("=")[2]
            if given and given[0] not in "#?:{(" and not given.endswith((")", "]")):
                self._refer(reference, given)

    def _called(self, reference: Reference, value: Value) -> None:
        """What else follows from a call that reaches a symbol of the source."""
        owner = self.unit.class_around(reference.scope)
        if value.kind is Kind.CLASS and owner is not None and not self._is(owner, value):
            self._add(self._symbol(self.unit, owner), "uses", self._target(value), reference, value=value)
        if self.unit.is_test and reference.scope and not self.resolver.program.units[value.path].is_test:
            self._add(self._scope(reference.scope), "tests", self._target(value), reference, value=value)

    def _refer(self, reference: Reference, expression: str) -> None:
        """A reference to what an argument names, where anything in the source has this name."""
        name = expression.rpartition(".")[2].strip("&'")
        program, family = self.resolver.program, self.unit.policy.family
        if name not in self.unit.imports and not program.named.get((family, name)):
            return
        for value in self.resolver.values(self.unit, reference.scope, expression):
            if value.kind in _SYMBOLS:
                self._add(self._scope(reference.scope), "references", self._target(value), reference, value=value)

    def _decorator(self, reference: Reference) -> None:
        decorated = self.unit.definitions.get(reference.name)
        for value in self.resolver.targets(self.unit, reference):
            if value.kind in _SYMBOLS and decorated is not None:
                target = self._symbol(self.unit, decorated)
                self._add(self._target(value), "decorates", target, reference, value=value)
                self._add(self._scope(reference.scope), "calls", self._target(value), reference, value=value)

    def _bases(self, definition: Definition) -> None:
        for reference, values in self.resolver.bases(self.unit, definition):
            for value in values:
                if value.kind not in {Kind.CLASS, Kind.EXTERNAL}:
                    continue
                kind = "implements" if reference.kind == "implements" or self._is_interface(value) else "inherits"
                self._add(self._symbol(self.unit, definition), kind, self._target(value), reference, value=value)

    def _declared(self, reference: Reference) -> None:
        """A class uses the types that it holds and takes; a function refers to those that it takes."""
        owner = self.unit.class_around(reference.scope)
        for value in self.resolver.values(self.unit, reference.scope, reference.value):
            for found in (value, *value.held):
                if found.kind is not Kind.OBJECT:
                    continue
                target = self._target(found)
                if owner is None:
                    self._add(self._scope(reference.scope), "references", target, reference, value=found)
                elif not self._is(owner, found):
                    self._add(self._symbol(self.unit, owner), "uses", target, reference, value=found)

    def _is(self, definition: Definition, value: Value) -> bool:
        return (self.unit.path, definition.id) == (value.path, value.name)

    def _is_interface(self, value: Value) -> bool:
        if value.kind is not Kind.CLASS:
            return False
        unit = self.resolver.program.units[value.path]
        return unit.definitions[value.name].kind in {"interface", "trait"} and unit.language != "rust"

    def _scope(self, scope: str) -> _Place:
        definition = self.unit.definitions.get(scope)
        return (self.unit.path, "file") if definition is None else self._symbol(self.unit, definition)

    def _target(self, value: Value) -> _Place:
        if value.kind in {Kind.EXTERNAL, Kind.EXTERNAL_OBJECT}:
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
        at: _Evidence | Reference,
        *,
        value: Value | None = None,
        reason: str = "",
    ) -> None:
        key = (subject[0], predicate, target[0])
        if key in self.triples:
            return
        how, confidence = (NAMES[value.how], CONFIDENCE[value.how]) if value else (FROM_PARSE, 1.0)
        if reason:
            how, confidence = f"{UNRESOLVED}: {reason}", 0.0
        self.triples[key] = Triple(
            *subject, predicate, *target, self.source, self.unit.path, at.chunk, at.line, confidence, how
        )
