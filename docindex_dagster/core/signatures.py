"""Function signatures derived from types, for the command line, agent tools and `help()`."""

import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from inspect import Parameter
from types import MappingProxyType
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, Field
from pydantic.fields import FieldInfo

_Function = TypeVar("_Function", bound=Callable[..., Any])


def with_parameters(parameters: Iterable[Parameter], before: str = "") -> Callable[[_Function], _Function]:
    """Add parameters to the signature of a function that takes them as `**kwargs`.

    Args:
        parameters: The parameters to add; their kind is ignored.
        before: The parameter to insert them before; at the end by default.
    """

    def decorate(function: _Function) -> _Function:
        signature = inspect.signature(function)
        own = [parameter for parameter in signature.parameters.values() if parameter.kind is not Parameter.VAR_KEYWORD]
        index = next((at for at, parameter in enumerate(own) if parameter.name == before), len(own))
        kind = own[index].kind if index < len(own) else Parameter.KEYWORD_ONLY
        added = [parameter.replace(kind=kind) for parameter in parameters]
        vars(function)["__signature__"] = signature.replace(parameters=[*own[:index], *added, *own[index:]])
        return function

    return decorate


def parameters_from_keys(keywords: type) -> Iterator[Parameter]:
    """Yield an optional parameter for each key of a TypedDict."""
    for name, annotation in keywords.__annotations__.items():
        yield Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _described(_: str, field: FieldInfo) -> object:
    """Return the annotation that tool schemas are generated from: type, limits and description."""
    return Annotated[field.annotation, *field.metadata, Field(description=field.description)]


def parameters_from_fields(
    model: type[BaseModel],
    annotated: Callable[[str, FieldInfo], object] = _described,
    without: Collection[str] = (),
    names: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Parameter]:
    """Yield a parameter for each field of a model: required ones first, inherited ones last.

    Args:
        model: The model of a request.
        annotated: Returns the annotation of a field.
        without: The names of fields to leave out.
        names: Parameter names that differ from the field name, by field name.
    """
    fields = {name: field for name, field in model.model_fields.items() if name not in without}
    own = model.__annotations__
    for name, field in sorted(fields.items(), key=lambda item: (not item[1].is_required(), item[0] not in own)):
        default = Parameter.empty if field.is_required() else field.default
        yield Parameter(
            names.get(name, name), Parameter.KEYWORD_ONLY, default=default, annotation=annotated(name, field)
        )
