"""What clients learn of tools: titles, effects, the JSON schema of arguments, and which of those are wrong."""

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, create_model

from docindex_dagster.operations.fields import quoted


@dataclass(frozen=True, slots=True)
class Offer:
    """A tool as a client shows it, and what it may do to what is stored."""

    title: str
    writes: bool = False
    destroys: bool = False


_Tool = TypeVar("_Tool", bound=Callable[..., str])


def offered(title: str, *, writes: bool = False, destroys: bool = False) -> Callable[[_Tool], _Tool]:
    """Offer a method as a tool."""

    def mark(method: _Tool) -> _Tool:
        vars(method)["offer"] = Offer(title, writes, destroys)
        return method

    return mark


def offers_of(owner: object) -> Iterator[tuple[str, Offer]]:
    """The tools of an object, by the names of their methods, in the order in which it defines them."""
    for name, method in vars(type(owner)).items():
        if isinstance(offer := getattr(method, "offer", None), Offer):
            yield name, offer


def model_of(tool: Callable[..., object], without: Collection[str] = ()) -> type[BaseModel]:
    """The arguments of a tool, by its signature.

    Args:
        tool: a function whose parameters are annotated.
        without: parameters that are none of the arguments.
    """
    fields: dict[str, Any] = {
        name: (parameter.annotation, ... if parameter.default is parameter.empty else parameter.default)
        for name, parameter in inspect.signature(tool, eval_str=True).parameters.items()
        if name not in {"self", *without}
    }
    return create_model(tool.__name__, **fields)


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of arguments, as short as can be: a model reads it with each request.

    What may be left out need not be null, though it may.
    """
    schema = model.model_json_schema()
    fields = {name: _short(field) for name, field in schema["properties"].items()}
    required = {"required": schema["required"]} if "required" in schema else {}
    return {"type": "object", "properties": fields, **required, "additionalProperties": False}


def _short(field: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a field without its title, which repeats the name, and without null."""
    others = [kind for kind in field.get("anyOf", ()) if kind != {"type": "null"}]
    if len(others) != 1:
        return {key: value for key, value in field.items() if key != "title"}
    return {**others[0], **{key: value for key, value in field.items() if key not in {"title", "anyOf", "default"}}}


def unknown_tool(name: str, tools: Collection[str]) -> str:
    """Says which tools there are."""
    return f"there is no tool {quoted(name)}; there are {', '.join(tools)}"


def unknown_arguments(tool: str, arguments: Collection[str], known: Collection[str]) -> str:
    """Says which arguments there are; empty if all are known."""
    unknown = [quoted(argument) for argument in arguments if argument not in known]
    return f"{tool} has no argument {' and no '.join(unknown[:3])}; it has {', '.join(known)}" if unknown else ""
