"""The first line of `docindex index`, which stands before all imports: they take a second."""

import os
import sys
from collections.abc import Sequence

from docindex_dagster.core.printable import in_line, shortened
from docindex_dagster.core.urls import is_url

_WITH_VALUE = ("--project", "--wait")
READY = "_DOCINDEX_READY"
"""The environment variable of a background process, for which its parent has printed the greeting."""
_SILENT = frozenset({"--json", "--help", "-h"})
_MOST_NAMED = 3
_LONGEST = 300  # characters of their names


def greet(arguments: Sequence[str]) -> None:
    """Say on standard error what is about to be indexed, if that is what the arguments of `docindex` ask for."""
    words = _words(arguments)
    if words[:1] != ["index"] or _SILENT.intersection(arguments) or READY in os.environ:
        return
    named = ["a repository" if is_url(word) else word for word in words[1:]]  # a URL may hold a password
    more = f" and {len(named) - _MOST_NAMED:,} more" if len(named) > _MOST_NAMED else ""
    what = shortened(", ".join(named[:_MOST_NAMED]), _LONGEST) + more if named else "all sources"
    sys.stderr.write(in_line(f"docindex: indexing {what} …").encode("utf-8", "replace").decode() + "\n")
    sys.stderr.flush()


def _words(arguments: Sequence[str]) -> list[str]:
    """The arguments that are no options."""
    is_value = [False, *(argument in _WITH_VALUE for argument in arguments)]
    pairs = zip(arguments, is_value, strict=False)
    return [argument for argument, is_of_option in pairs if not is_of_option and not argument.startswith("-")]
