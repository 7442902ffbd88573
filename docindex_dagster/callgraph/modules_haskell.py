"""To which file of the source an import of Haskell leads."""

import posixpath
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

_ENDINGS = (".hs", ".lhs", ".hsc")


def haskell_modules(paths: Iterable[str]) -> Mapping[str, Sequence[str]]:
    """The files that may be modules, by the last part of the name."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(paths):
        if path.endswith(_ENDINGS):
            found[posixpath.basename(path).partition(".")[0]].append(path)
    return found


def haskell_files(modules: Mapping[str, Sequence[str]], module: str) -> list[str]:
    """The files whose paths end as the name of a module says."""
    tail = module.replace(".", "/")
    named = modules.get(posixpath.basename(tail), ())
    return [path for path in named if f"/{path.rpartition('.')[0]}".endswith(f"/{tail}")]
