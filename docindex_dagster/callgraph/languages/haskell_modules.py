"""To which file of the source an import of Haskell leads."""

import posixpath
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from docindex_dagster.callgraph.modules import Modules

_ENDINGS = (".hs", ".lhs", ".hsc")


def named(paths: Iterable[str]) -> Mapping[str, Sequence[str]]:
    """The files that may be modules, by the last part of the name."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(paths):
        if path.endswith(_ENDINGS):
            found[posixpath.basename(path).partition(".")[0]].append(path)
    return found


def find(modules: Modules, importer: str, module: str) -> Iterator[str]:
    """The nearest of the files whose paths end as the name of a module says."""
    tail = module.replace(".", "/")
    known = modules.haskell.get(posixpath.basename(tail), ())
    if found := [path for path in known if f"/{path.rpartition('.')[0]}".endswith(f"/{tail}")]:
        yield min(found, key=lambda path: (-_shared(importer, path), path.count("/"), path))


def _shared(first: str, second: str) -> int:
    return len(posixpath.commonprefix([first.split("/")[:-1], second.split("/")[:-1]]))
