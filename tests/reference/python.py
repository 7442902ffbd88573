"""Reference page of the Python API."""

import inspect
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from docindex_dagster import api
from docindex_dagster.core import errors
from docindex_dagster.search import context, matches, model
from tests.reference.markdown import table

_ABOUT = """\
# Python API

`from docindex_dagster import open_index` opens an index. [Search from Python](../how-to/search-from-python.md) has
examples with their output.
"""
_SECTION = re.compile(r"^(Args|Returns|Raises|Attributes|Yields|Example):$", re.MULTILINE)
_ITEM = re.compile(r"^ {4}(\w+): ", re.MULTILINE)


def page() -> str:
    """Return the page."""
    parts = [_ABOUT, *_function(api.open_index), *_class(api.Index), *_class(api.Where)]
    for module in (model, matches, context):
        for name, found in _classes(module):
            if name in {"Hit", "Matches", "Match", "Context", "ContextPassage", "Mode", "Granularity"}:
                parts += _class(found)
    rows = ((f"`{name}`", f"`{found.__bases__[0].__name__}`", _first(found)) for name, found in _classes(errors))
    parts += ["## Errors and warnings\n", table(("class", "base", "raised when"), rows)]
    return "\n".join(parts)


def _classes(module: ModuleType) -> Iterator[tuple[str, type]]:
    for name, found in vars(module).items():
        if inspect.isclass(found) and found.__module__ == module.__name__ and not name.startswith("_"):
            yield name, found


def _class(found: type) -> Iterator[str]:
    yield f"## {found.__name__}\n"
    yield _docstring(found)
    for name, member in vars(found).items():
        if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property)):
            yield from _member(found, name, member)


def _member(owner: type, name: str, member: Any) -> Iterator[str]:
    yield f"### {owner.__name__}.{name}\n"
    if not isinstance(member, property):
        yield _signature(name, member)
    yield _docstring(member)


def _function(found: Callable[..., Any]) -> Iterator[str]:
    yield f"## {found.__name__}\n"
    yield _signature(found.__name__, found)
    yield _docstring(found)


def _signature(name: str, found: Callable[..., Any]) -> str:
    text = (
        re.sub(r"[\w.]+\.(?=[A-Z]\w*)|'", "", str(inspect.signature(found))).replace("self, ", "").replace("self", "")
    )
    return f"```python\n{name}{text}\n```\n"


def _docstring(found: Any) -> str:
    """Convert a Google-style docstring to Markdown."""
    about, *sections = _SECTION.split(inspect.getdoc(found) or "")
    parts = [about.strip(), ""]
    for title, body in zip(sections[::2], sections[1::2], strict=True):
        lines = inspect.cleandoc("\n" + body.strip("\n"))
        if title == "Example":
            parts += [f"```python\n{lines}\n```", ""]
        elif title in {"Returns", "Yields"}:
            parts += [f"{title}: {' '.join(lines.split())}", ""]
        else:
            parts += [table((title.lower(), "meaning"), _items(body))]
    return "\n".join(parts)


def _items(body: str) -> Iterator[tuple[str, str]]:
    _, *found = _ITEM.split(body)
    for name, meaning in zip(found[::2], found[1::2], strict=True):
        yield f"`{name}`", meaning


def _first(found: type) -> str:
    return (inspect.getdoc(found) or "").split("\n\n")[0]
