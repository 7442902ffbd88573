"""The resolver: its parts put together.

Names are followed as a reader follows them: through the scopes around them, imports, the types that are declared or
that follow from what is assigned, class hierarchies, what functions return, and what callers give for a parameter.
What that does not settle stays unresolved: a wrong edge is worse than none.
"""

from collections.abc import Callable, Mapping
from functools import partial
from types import ModuleType
from typing import Any

from docindex_dagster.callgraph.dependencies.tabling import Table
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

# The queries that each part answers, by functions of their names.
_ANSWERS: Mapping[ModuleType, str] = {
    arguments: "given parameter to_callback",
    calls: "reached reason targets",
    classes: "applied",
    definitions: "defined",
    dispatch: "implementations may_reach",
    evaluate: "values",
    hierarchy: "ancestor_names bases derived direct_bases impls owner parts",
    imports: "import_targets in_module made offered packages path_word used_in visible",
    members: "member members_of",
    namespaces: "extensions in_namespace of_namespace",
    results: "elements result returned",
    scopes: "bound top",
    spaces: "classes_at included_types seen template_parameters types_named",
    types: "type_names typed",
}
# Those that mean the same at several places, each by the function that gives the outermost of these.
_OUTERMOST: Mapping[str, Callable[..., tuple[Any, ...]]] = {"values": evaluate.outermost, "reached": calls.outermost}


def resolver(program: Program, table: Table) -> Queries:
    """What resolves the names of one file of a program after the other; what was found is tabled."""
    q = Queries(program, table)
    for part, names in _ANSWERS.items():
        for name in names.split():
            outermost = _OUTERMOST.get(name)
            q.answer(name, partial(getattr(part, name), q), partial(outermost, q) if outermost else None)
    return q
