"""Sets of values: each once, as found by some step, or those of one sort."""

from collections.abc import Iterable

from docindex_dagster.callgraph.resolver.values import Resolution, Value, Values, collection

MOST_VALUES = 8


def found_by(values: Iterable[Value], resolution: Resolution) -> list[Value]:
    """The same values, found by a step that may be weaker."""
    return [value.found(resolution) for value in values]


def known(values: Iterable[Value]) -> list[Value]:
    """Those that are not just named as something outside of the program."""
    return [value for value in values if value.kind != "external"]


def functions(values: Iterable[Value]) -> list[Value]:
    """Those that are functions."""
    return [value for value in values if value.kind == "function"]


def is_known(value: Value) -> bool:
    """Whether something of the program is in a value."""
    return value.kind != "external object" or any(map(is_known, value.held))


def distinct(values: Iterable[Value]) -> Values:
    """Each value once, by its strongest step; at most `MOST_VALUES`."""
    if isinstance(values, (list, tuple)) and len(values) < 2:  # noqa: PLR2004 nothing to compare
        return tuple(values)
    found: dict[tuple[object, ...], Value] = {}
    for value in values:
        held = value.held if value.kind == "external object" else value.record
        key = (value.kind, value.path, value.name, held)
        known = found.get(key)
        if known is None:
            found[key] = value
            if len(found) >= MOST_VALUES:
                break
        elif value.kind == "collection" and value.held != known.held:
            found[key] = collection(distinct([*known.held, *value.held]), min(known.resolution, value.resolution))
        elif value.resolution < known.resolution:
            found[key] = value
    return tuple(found.values())
