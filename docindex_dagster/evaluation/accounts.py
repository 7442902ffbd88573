"""Documents that say what changed, as change logs: they repeat what commits say of themselves."""

import re

_ACCOUNT = re.compile(
    r"(?:^|/)(?:change[-_]?(?:s|log|logs)|history|news|releases?|release[-_]?notes?|whats[-_]?new|unreleased)"
    r"(?:[-_.\d][^/]*)?(?:/|$)",
    re.IGNORECASE,
)


def is_account(path: str, source_type: str) -> bool:
    """Whether a file is such a document, by its path."""
    return source_type == "doc" and _ACCOUNT.search(path) is not None
