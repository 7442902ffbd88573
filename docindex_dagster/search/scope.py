"""Which sources a search looks at when it is not told: of a repository, its first partition and no further branches."""

from collections.abc import Collection

from docindex_dagster.keys import is_branch


def without_branches(keys: Collection[str]) -> tuple[str, ...]:
    """The keys of all sources but further branches; empty, which a filter takes for all, where there are no others."""
    chosen = tuple(key for key in keys if not is_branch(key))
    return chosen if len(chosen) < len(keys) else ()
