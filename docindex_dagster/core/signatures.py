"""Signatures that are derived from a type, for what reads them: agents' tools, command lines, `help`."""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])


def with_keywords(keywords: type, before: str = "") -> Callable[[_Function], _Function]:
    """Show each key of a typed dictionary as a parameter of a function that takes it as `**`.

    Args:
        keywords: the typed dictionary; each of its keys may be left out.
        before: the parameter in front of which they are shown; by default they are the last ones.
    """

    def decorate(function: _Function) -> _Function:
        signature = inspect.signature(function)
        own = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
        place = next((at for at, one in enumerate(own) if one.name == before), len(own))
        kind = own[place].kind if place < len(own) else inspect.Parameter.KEYWORD_ONLY
        shown = [
            inspect.Parameter(name, kind, default=None, annotation=annotation)
            for name, annotation in keywords.__annotations__.items()
        ]
        parameters = [*own[:place], *shown, *own[place:]]
        function.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return function

    return decorate
