"""Reference page of the settings."""

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from docindex_dagster.core import settings
from tests.reference.markdown import sentence, table

_ABOUT = """\
# Settings

The settings of a project live in its `docindex.toml`. An environment variable overrides each of them:
`DOCINDEX_SEARCH__TOP_K=20` sets `search.top_k`. Secrets come only from the environment. docindex reports an unknown key
or an invalid value, with its position, before it does anything else.

Settings marked with 🔒 reach outside the project or run something. They apply only in projects that you
[trust](../explanation/security.md).
"""


def page() -> str:
    """Return the page."""
    return "\n".join([_ABOUT, *_sections()])


def _sections() -> Iterator[str]:
    for name, field in settings.Settings.model_fields.items():
        section = next((each for each in (field.annotation, *get_args(field.annotation)) if _is_section(each)), None)
        if section is None:
            continue
        heading = f"[[{name}]]" if get_origin(field.annotation) is tuple else f"[{name}]"
        yield f"## `{heading}`\n"
        yield f"{section.__doc__}\n"
        meanings = _attribute_docstrings()[section.__name__]
        rows = (
            (f"`{key}`", _type(item.annotation), _default(item), _meaning(item, meanings[key]))
            for key, item in section.model_fields.items()
        )
        yield table(("key", "type", "default", "meaning"), rows)


def _is_section(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, BaseModel)


@cache
def _attribute_docstrings() -> dict[str, dict[str, str]]:
    """Return the strings below the attributes of each class."""
    classes = (node for node in ast.parse(inspect.getsource(settings)).body if isinstance(node, ast.ClassDef))
    return {
        node.name: {
            field.target.id: text.value.value
            for field, text in pairwise(node.body)
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
            if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str)
        }
        for node in classes
    }


def _meaning(field: FieldInfo, text: str) -> str:
    is_privileged = any(type(each).__name__ == "Privileged" for each in field.metadata)
    return f"{'🔒 ' * is_privileged}{sentence(text)} {_bounds(field)}".strip()


def _bounds(field: FieldInfo) -> str:
    bounds = {
        name: getattr(each, name) for each in field.metadata for name in ("ge", "gt", "le") if hasattr(each, name)
    }
    least = f"at least {bounds['ge']:,}" if bounds.get("ge") else "above 0" if "gt" in bounds else ""
    most = f"at most {bounds['le']:,}" if "le" in bounds else ""
    return sentence(", ".join(filter(None, (least, most))))


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    default = field.default
    if default is None:
        return ""
    shown = {True: "true", False: "false", (): "[]"}.get(default) if isinstance(default, bool | tuple) else None
    return f"`{shown or (list(default) if isinstance(default, tuple) else default)}`"


def _type(annotation: Any) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _type(arguments[0])
    if origin in {Union, UnionType}:
        return " or ".join(dict.fromkeys(_type(each) for each in arguments if each is not type(None)))
    if origin is Literal:
        return ", ".join(f"`{value}`" for value in arguments)
    if origin is tuple:
        return f"list of {_type(arguments[0])}"
    if origin is dict:
        return "table"
    names = {str: "string", int: "integer", float: "number", bool: "boolean", SecretStr: "secret"}
    return names.get(annotation, "string")
