"""Function signatures derived from types, for command lines, agents' tools and `help`."""

import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from inspect import Parameter
from types import MappingProxyType
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, Field
from pydantic.fields import FieldInfo

_Function = TypeVar("_Function", bound=Callable[..., Any])


def with_parameters(parameters: Iterable[Parameter], before: str = "") -> Callable[[_Function], _Function]:
    """Add parameters to the signature of a function that takes them as `**`.

    Args:
        parameters: to add; their kind is ignored.
        before: the parameter to insert them before; at the end by default.
    """

    def decorate(function: _Function) -> _Function:
        signature = inspect.signature(function)
        own = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
        place = next((at for at, one in enumerate(own) if one.name == before), len(own))
        kind = own[place].kind if place < len(own) else Parameter.KEYWORD_ONLY
        shown = [one.replace(kind=kind) for one in parameters]
        vars(function)["__signature__"] = signature.replace(parameters=[*own[:place], *shown, *own[place:]])
        return function

    return decorate


def of_keys(keywords: type) -> Iterator[Parameter]:
    """Yield an optional parameter for each key of a typed dictionary."""
    for name, annotation in keywords.__annotations__.items():
        yield Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _described(_: str, field: FieldInfo) -> object:
    """Return the annotation that tool schemas are made from: type, limits and description."""
    return Annotated[field.annotation, *field.metadata, Field(description=field.description)]


def of_fields(
    model: type[BaseModel],
    annotated: Callable[[str, FieldInfo], object] = _described,
    without: Collection[str] = (),
    names: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Parameter]:
    """Yield a parameter for each field of a model: required ones first, inherited ones last.

    Args:
        model: a request.
        annotated: returns the annotation of a field.
        without: names of fields to leave out.
        names: parameter names that differ from their fields, by field.
    """
    fields = {name: field for name, field in model.model_fields.items() if name not in without}
    own = model.__annotations__
    for name, field in sorted(fields.items(), key=lambda one: (not one[1].is_required(), one[0] not in own)):
        default = Parameter.empty if field.is_required() else field.default
        yield Parameter(
            names.get(name, name), Parameter.KEYWORD_ONLY, default=default, annotation=annotated(name, field)
        )
