"""Options and commands derived from operations."""

from collections.abc import Callable, Collection
from datetime import datetime
from enum import StrEnum
from inspect import Parameter
from types import GenericAlias
from typing import Annotated, Any, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

import typer
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from docindex_dagster.cli import completion
from docindex_dagster.cli.common import Json, TopK, view_of
from docindex_dagster.cli.selected_project import load_project
from docindex_dagster.core.signatures import parameters_from_fields, with_parameters
from docindex_dagster.operations.listing import Listing
from docindex_dagster.render import console

_Function = TypeVar("_Function", bound=Callable[..., Any])
# Options whose name differs from their field, or that have a short form.
_FLAGS = {
    "sources": ("--source", "-s"),
    "all_sources": ("--all", "-a"),
    "languages": ("--language", "-l"),
    "human_languages": ("--lang-human",),
    "types": ("--type", "-t"),
    "kinds": ("--kind",),
    "path": ("--path", "-p"),
    "mode": ("--mode", "-m"),
    "granularity": ("--granularity", "-g"),
    "depth": ("--depth", "-d"),
    "edges": ("--edge", "-e"),
    "sessions": ("--session", "-s"),
    "roles": ("--role",),
}
_LIMITS = {"ge": "min", "le": "max"}
_COMPLETIONS: dict[str, Callable[[str], list[str]]] = {
    "sources": completion.sources,
    "languages": completion.languages,
    "kinds": completion.kinds,
}


def request_options(
    request: type[BaseModel], *, before: str = "json", without: Collection[str] = ()
) -> Callable[[_Function], _Function]:
    """Add an option to a command for each field of a request; the command receives them as `**`.

    Args:
        request: the model.
        before: the parameter before which they are inserted.
        without: names of fields to leave out.
    """
    types = get_type_hints(request)  # without their validators
    return with_parameters(
        parameters_from_fields(
            request, lambda name, field: Annotated[_plain(types[name]), _option(name, field)], without
        ),
        before,
    )


def build_command(operation: Listing[Any]) -> Callable[..., None]:
    """Return the command for an operation that lists results."""
    argument = next(parameters_from_fields(operation.request))
    description = typer.Argument(
        help=operation.request.model_fields[argument.name].description, metavar=argument.name.upper()
    )
    is_required = argument.default is Parameter.empty
    positional = argument.replace(
        annotation=Annotated[list[str] if is_required else list[str] | None, description],
        default=Parameter.empty if is_required else None,
    )

    @with_parameters([positional], before="top_k")
    @request_options(operation.request, without=[argument.name])
    def command(top_k: TopK = None, json: Json = False, **options: Any) -> None:
        view = view_of(load_project())
        words = options.pop(argument.name) or ()
        request = operation.request.parse(**options, **{argument.name: " ".join(words)})
        found = operation.run(view, request, top_k or view.settings.search.top_k)
        if json:
            console.as_json(found)
        else:
            console.print_results(found, view.settings.home, operation.nothing, with_source=request.has_several(view))

    command.__doc__ = operation.summary
    return command


def _option(name: str, field: FieldInfo) -> Any:
    flags = _FLAGS.get(name, (f"--{name.replace('_', '-')}",))
    options = {key: getattr(one, by) for one in field.metadata for by, key in _LIMITS.items() if hasattr(one, by)}
    if "datetime" in str(field.annotation):
        options |= {"parser": _moment(field), "metavar": "MOMENT"}
    return typer.Option(*flags, help=field.description, autocompletion=_COMPLETIONS.get(name), **options)


def _moment(field: FieldInfo) -> Callable[[str], datetime]:
    adapter: TypeAdapter[datetime] = TypeAdapter(cast("type[datetime]", field.annotation))

    def parsed(text: str) -> datetime:
        try:
            return adapter.validate_python(text)
        except ValidationError as error:
            raise typer.BadParameter(error.errors()[0]["msg"].removeprefix("Value error, ")) from None

    return parsed


def _plain(annotation: Any) -> Any:
    """Return a type that typer supports: a list of literals becomes a list of an enumeration."""
    inner = get_args(annotation)[0] if get_origin(annotation) is list else None
    if get_origin(inner) is not Literal:
        return annotation
    return GenericAlias(list, StrEnum("Choice", {value: value for value in get_args(inner)}))
