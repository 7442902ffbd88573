"""To which files `#include` leads: as the compiler looks for them, without knowing the folders that it is given."""

import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence

from docindex_dagster.callgraph.modules import Modules

_ENDINGS = (".h", ".hh", ".hpp", ".hxx", ".h++", ".inc", ".inl", ".ipp", ".tpp", ".def", ".c", ".cc", ".cpp", ".cxx")
_STANDARD_NAMES = """
    assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg stdatomic
    stdbool stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar wchar wctype unistd fcntl dirent
    pthread poll sched semaphore dlfcn glob grp pwd regex syslog termios utime strings getopt malloc memory alloca
    windows winsock2 io direct process
"""
STANDARD_HEADERS = frozenset(f"{name}.h" for name in _STANDARD_NAMES.split())


def headers(paths: Iterable[str]) -> Mapping[str, Sequence[str]]:
    """The files that may be included, by their names."""
    found: dict[str, list[str]] = {}
    for path in sorted(paths):
        if path.endswith(_ENDINGS):
            found.setdefault(posixpath.basename(path), []).append(path)
    return found


def find(modules: Modules, importer: str, module: str) -> Iterator[str]:
    """The file that an include means: beside the file, else the nearest whose path ends so."""
    beside = posixpath.normpath(posixpath.join(posixpath.dirname(importer), module))
    if beside in modules.paths:
        yield beside
        return
    if module in STANDARD_HEADERS:
        return
    tail = posixpath.normpath(module)
    while tail.startswith("../"):
        tail = tail.removeprefix("../")
    named = modules.headers.get(posixpath.basename(tail), ())
    found = [path for path in named if path == tail or path.endswith(f"/{tail}")]
    if found:
        yield min(found, key=lambda path: (-_shared(importer, path), path.count("/"), path))


def _shared(first: str, second: str) -> int:
    return len(posixpath.commonprefix([first.split("/")[:-1], second.split("/")[:-1]]))
