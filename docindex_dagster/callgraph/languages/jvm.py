"""What the languages of the Java virtual machine have in common: their names meet."""

from docindex_dagster.callgraph.rules import Rules

_JAVA_INVOKERS = """
    run get apply accept test call compare applyAsInt applyAsLong applyAsDouble getAsInt getAsLong getAsDouble
    getAsBoolean
"""
RULES = Rules(
    "jvm",
    sharing="namespace",
    has_implicit_members=True,
    separates_kinds=True,
    wrappers=frozenset({"Lazy"}),
    callers=frozenset({*_JAVA_INVOKERS.split(), "invoke"}),
)
