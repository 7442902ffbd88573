"""The resolver: its parts put together, and what others ask of it.

Names are followed as a reader follows them: through the scopes around them, imports, the types that are declared or
that follow from what is assigned, class hierarchies, what functions return, and what callers give for a parameter.
What that does not settle stays unresolved: a wrong edge is worse than none.
"""

from collections.abc import Iterator
from functools import partial

from docindex_dagster.callgraph.dependencies.tabling import Table
from docindex_dagster.callgraph.ir import Base, CallSite, Decorator, Definition, Expression, Import
from docindex_dagster.callgraph.program import Program
from docindex_dagster.callgraph.resolver import (
    arguments,
    calls,
    classes,
    definitions,
    dispatch,
    evaluate,
    hierarchy,
    imports,
    members,
    namespaces,
    results,
    scopes,
    spaces,
    types,
)
from docindex_dagster.callgraph.resolver.queries import Queries
from docindex_dagster.callgraph.resolver.values import Values, distinct
from docindex_dagster.callgraph.units import Unit


class Resolver:
    """Resolves the names of one file after the other; what was found is tabled."""

    def __init__(self, program: Program, table: Table) -> None:
        self.program = program
        self.queries = composed(program, table)

    def start(self) -> None:
        """Begin with a file: what is looked at from here on is looked at for it."""
        self.queries.start()

    def close(self) -> None:
        """Let go of all answers. They hold one another, and Python takes long to find that nothing else holds them."""
        self.queries.close()

    def looked(self) -> list[int]:
        """The keys of all that was looked at since the start, sorted."""
        return self.queries.table.looked()

    def targets(self, unit: Unit, call: CallSite | Decorator) -> Values:
        """What a call reaches: functions, classes of which it makes an object, and what is external."""
        return calls.targets(self.queries, unit, call)

    def may_reach(self, call: CallSite, targets: Values) -> Values:
        """The methods that may run instead of the targets of a call, since they override them."""
        return dispatch.may_reach(self.queries, call, targets)

    def reason(self, unit: Unit, call: CallSite) -> str:
        """Why a call reaches nothing that is known."""
        return calls.reason(self.queries, unit, call)

    def imported(self, unit: Unit, one: Import) -> Values:
        """What an import stands for."""
        return distinct(imports.of_import(self.queries, unit, one))

    def values(self, unit: Unit, scope: str, expression: Expression) -> Values:
        """What an expression may stand for at a place."""
        return self.queries.values(unit, scope, expression)

    def bases(self, unit: Unit, definition: Definition) -> Iterator[tuple[Base, Values]]:
        """The base classes that a definition names, each with what the name stands for."""
        return hierarchy.bases(self.queries, unit, definition)


def composed(program: Program, table: Table) -> Queries:
    """The queries, each with the part of the resolver that answers it."""
    q = Queries(program, table)
    q.defined = partial(definitions.defined, q)
    q.bases = partial(hierarchy.bases, q)
    q.owner = partial(hierarchy.owner, q)
    q.top = partial(scopes.top, q)
    q.bound = partial(scopes.bound, q)
    q.of_namespace = partial(namespaces.of_namespace, q)
    q.in_module = partial(imports.in_module, q)
    q.used_in = partial(imports.used_in, q)
    q.path_word = partial(imports.path_word, q)
    q.made = partial(imports.made, q)
    q.extensions = partial(namespaces.extensions, q)
    q.in_namespace = partial(namespaces.in_namespace, q)
    q.members_of = partial(members.members_of, q)
    q.type_names = partial(types.type_names, q)
    q.typed = partial(types.typed, q)
    q.result = partial(results.result, q)
    q.returned = partial(results.returned, q)
    q.targets = partial(calls.targets, q)
    q.parameter = partial(arguments.parameter, q)
    q.given = partial(arguments.given, q)
    q.to_callback = partial(arguments.to_callback, q)
    q.applied.answered_by(partial(classes.applied, q))
    q.evaluated.answered_by(partial(evaluate.evaluated, q))
    q.member.answered_by(partial(members.member, q))
    q.elements.answered_by(partial(results.elements, q))
    q.parts.answered_by(partial(hierarchy.parts, q))
    q.impls.answered_by(partial(hierarchy.impls, q))
    q.direct_bases.answered_by(partial(hierarchy.direct_bases, q))
    q.derived.answered_by(partial(hierarchy.derived, q))
    q.implementations.answered_by(partial(dispatch.implementations, q))
    q.ancestor_names.answered_by(partial(hierarchy.ancestor_names, q))
    q.offered.answered_by(partial(imports.offered, q))
    q.packages.answered_by(partial(imports.packages, q))
    q.visible.answered_by(partial(spaces.included, q))
    q.seen.answered_by(partial(spaces.seen, q))
    q.classes_at.answered_by(partial(spaces.classes_at, q))
    q.included_types.answered_by(partial(spaces.included_types, q))
    q.reached.answered_by(partial(calls.reached, q))
    q.chosen.answered_by(partial(calls.chosen, q))
    return q
