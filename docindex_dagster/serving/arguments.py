"""Tool definitions for clients: titles, effects, JSON schemas of arguments, and errors for invalid ones."""

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, create_model

from docindex_dagster.operations.fields import quoted


@dataclass(frozen=True, slots=True)
class ToolInfo:
    """The title of a tool for clients, and its effect on stored data."""

    title: str
    writes: bool = False
    destroys: bool = False


_ToolT = TypeVar("_ToolT", bound=Callable[..., str])


def mcp_tool(title: str, *, writes: bool = False, destroys: bool = False) -> Callable[[_ToolT], _ToolT]:
    """Mark a method as a tool."""

    def mark(method: _ToolT) -> _ToolT:
        vars(method)["offer"] = ToolInfo(title, writes, destroys)
        return method

    return mark


def tools_of(owner: object) -> Iterator[tuple[str, ToolInfo]]:
    """Yield the tools of an object by method name, in order of definition."""
    for name, method in vars(type(owner)).items():
        if isinstance(offer := getattr(method, "offer", None), ToolInfo):
            yield name, offer


def model_of(tool: Callable[..., object], without: Collection[str] = ()) -> type[BaseModel]:
    """Create a model of a tool's arguments from its signature.

    Args:
        tool: a function with annotated parameters.
        without: parameters that are not arguments.
    """
    fields: dict[str, Any] = {
        name: (parameter.annotation, ... if parameter.default is parameter.empty else parameter.default)
        for name, parameter in inspect.signature(tool, eval_str=True).parameters.items()
        if name not in {"self", *without}
    }
    return create_model(tool.__name__, **fields)


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of the arguments, kept short because a model reads it with each request.

    Optional arguments may be null, but the schema does not say so.
    """
    schema = model.model_json_schema()
    fields = {name: _short(field) for name, field in schema["properties"].items()}
    required = {"required": schema["required"]} if "required" in schema else {}
    return {"type": "object", "properties": fields, **required, "additionalProperties": False}


def _short(field: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a field without null and without its title, which only repeats the name."""
    others = [kind for kind in field.get("anyOf", ()) if kind != {"type": "null"}]
    if len(others) != 1:
        return {key: value for key, value in field.items() if key != "title"}
    return {**others[0], **{key: value for key, value in field.items() if key not in {"title", "anyOf", "default"}}}


def unknown_tool(name: str, tools: Collection[str]) -> str:
    """Return the error for an unknown tool, which lists the known ones."""
    return f"tool {quoted(name)} not found; available tools: {', '.join(tools)}"


def unknown_arguments(tool: str, arguments: Collection[str], known: Collection[str]) -> str:
    """Return the error for unknown arguments, which lists the known ones; empty if all are known."""
    unknown = [quoted(argument) for argument in arguments if argument not in known]
    return f"{tool} has no argument {' or '.join(unknown[:3])}; it accepts {', '.join(known)}" if unknown else ""
