"""Values in nested groups, such as a text of settings holds: looked up, set and removed by a path of keys."""

from collections.abc import Mapping, Sequence
from typing import Any


def has(data: Any, path: Sequence[str]) -> bool:
    """Whether there is a value at a path."""
    for key in path:
        if not isinstance(data, Mapping) or key not in data:
            return False
        data = data[key]
    return True


def with_value(data: Mapping[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    """The data with a value at a path; groups on it that are missing are made.

    Raises:
        TypeError: something else than a group is on the path.
    """
    key, *others = path
    if not others:
        return {**data, key: value}
    inner = data.get(key, {})
    if not isinstance(inner, Mapping):
        raise TypeError(f"{key} is no group")
    return {**data, key: with_value(inner, others, value)}


def without(data: Mapping[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """The data without the value at a path, and without groups that held nothing else."""
    key, *others = path
    after = dict(data)
    if others and isinstance(after.get(key), Mapping):
        after[key] = without(after[key], others)
    if not others or after.get(key) == {}:
        after.pop(key, None)
    return after


def is_only_without(found: Any, before: Mapping[str, Any], path: Sequence[str]) -> bool:
    """Whether what is found is what was there before without the value at a path; groups around it may be empty."""
    return isinstance(found, Mapping) and not has(found, path) and without(found, path) == without(before, path)
