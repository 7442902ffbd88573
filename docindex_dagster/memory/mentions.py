"""What a text writes as code: paths of files, and names of symbols. Words of prose are none.

A name is written as code in backticks, with parentheses behind it, with dots, underscores or capitals in it. All
patterns take time in proportion to the text, whatever it holds: each reads a run of characters once.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from docindex_dagster.graph.documents import may_be_name
from docindex_dagster.sources.classify import classify_name

_LONGEST = 200  # characters; longer runs are data
_MOST, _MOST_READ = 256, 8192  # things written as code, and runs that may be such
_RUN = r"[\w./\\:#@+~-]"  # what paths and names are made of
# Of a run, only the first character needs to be tried: the others have one before them. A plain word is none.
_WRITTEN = re.compile(
    rf"`(?P<span>[^`\n]{{1,{_LONGEST}}})`"
    rf"|(?<!{_RUN})(?={_RUN})(?P<run>[A-Z]?[a-z]*+(?={_RUN}|\(\)){_RUN}*+)(?P<call>\(\))?"
)
_WHOLE_SPAN = re.compile(rf"(?P<run>{_RUN}+)(?P<call>\(.*\))?")
_NAME = re.compile(r"[^\W\d]\w*(?:(?:\.|::|#|\\)[^\W\d]\w*){0,8}")
_PARTS = re.compile(r"::|#|\\")
_COMPOUND = re.compile(r"\w_\w|^_\w|[a-z0-9][A-Z]|[A-Z]{2}[a-z]")  # snake_case, _private, camelCase, HTTPError
_DRIVE = re.compile(r"[A-Za-z]:[/\\]")
_OBJECT = re.compile(r"(?:self|this|cls|super)\.")
_PLACES_OF_NO_NAME = frozenset({"", ".", "..", "~"})


@dataclass(frozen=True, slots=True)
class PathMention:
    """The path of a file, or the end of one; or one that begins above the source."""

    path: str


@dataclass(frozen=True, slots=True)
class NameMention:
    """The name of a symbol, qualified by dots or not, and the path of its file where the text writes both in one."""

    name: str
    is_called: bool
    file: str = ""


Mention = PathMention | NameMention


def mentions_in(text: str) -> list[Mention]:
    """What a text writes as code, each once, in the order in which it does: at most so many."""
    found: dict[Mention, None] = {}
    for one in _all(text):
        found[one] = None
        if len(found) == _MOST:
            break
    return [*found]


def _all(text: str) -> Iterator[Mention]:
    for match in islice(_WRITTEN.finditer(text), _MOST_READ):
        if match["span"] is None:
            yield from _of_run(match["run"], is_called=match["call"] is not None, in_backticks=False)
        elif whole := _WHOLE_SPAN.fullmatch(match["span"]):
            yield from _of_run(whole["run"], is_called=whole["call"] is not None, in_backticks=True)
        else:
            yield from _path(match["span"])  # one with spaces in it
            yield from _all(match["span"])


def _of_run(run: str, *, is_called: bool, in_backticks: bool) -> Iterator[Mention]:
    text = run.rstrip(".:-#@+~/\\")
    if len(run) > _LONGEST or "://" in text:
        return
    file, mark, inside = text.partition("::")
    paths = [*_path(file)]
    yield from paths
    is_in_file = bool(paths and mark)  # as pytest writes it: tests/test_pump.py::test_flow
    found = _NAME.fullmatch(inside if is_in_file else text.lstrip("@.:~-"))
    if found is None:
        return
    dotted = _PARTS.sub(".", found[0])
    name = _OBJECT.sub("", dotted, count=1)
    is_code = is_in_file or is_called or "." in name or _COMPOUND.search(name) is not None
    if is_code or (in_backticks and may_be_name(name)):
        yield NameMention(name, is_called, paths[0].path if is_in_file else "")


def _path(text: str) -> Iterator[PathMention]:
    """The path that a text is, without line numbers: it has folders, or an ending or name that files have."""
    without_drive = _DRIVE.sub("/", text, count=1) if _DRIVE.match(text) else text
    plain = re.split("[:#]", without_drive, maxsplit=1)[0].replace("\\", "/")
    parts = [part for part in plain.split("/") if part not in _PLACES_OF_NO_NAME]
    if parts and (parts[1:] or classify_name(parts[0].encode(errors="replace"))):
        yield PathMention("/".join(parts))
