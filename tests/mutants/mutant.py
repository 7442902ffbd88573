"""Mechanisms of the call graph and how to disable them in the running program."""

import importlib
import inspect
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple

PACKAGE = "docindex_dagster"
_STAND_IN = "_mutant_of_the_tests"
_CODE = eval(f"lambda *given, **named: {_STAND_IN}(*given, **named)").__code__


class Argument(NamedTuple):
    """Return value that repeats an argument. Position 0 is `self` for methods."""

    position: int


class Mutant(NamedTuple):
    """Mechanism to disable. `where` is the `module:qualified name` of a function or constant in the package."""

    name: str
    what: str
    where: str
    returns: Any = ()  # the replacement value if `where` names a constant


def take_out(mutant: Mutant) -> None:
    """Disable a mechanism everywhere in the program.

    Raises:
        AttributeError: the package has no such name. Update the table.
        ModuleNotFoundError: the package has no such module.
    """
    module, _, qualified = mutant.where.partition(":")
    owner: Any = importlib.import_module(f"{PACKAGE}.{module}")
    *outer, name = qualified.split(".")
    for part in outer:
        owner = getattr(owner, part)
    target = inspect.getattr_static(owner, name)
    function = inspect.unwrap(getattr(target, "func", target))
    if isinstance(function, FunctionType):
        _replace_code(function, _stand_in(mutant.returns))
    else:
        _replace_everywhere(name, target, mutant.returns)


def _stand_in(returns: Any) -> Callable[..., Any]:
    if isinstance(returns, Argument):
        return lambda *given: given[returns.position]
    return lambda *_, **__: returns


def _replace_code(function: FunctionType, stand_in: Callable[..., Any]) -> None:
    """Replace the code object, because tables and other modules hold the function under other names."""
    function.__globals__[_STAND_IN] = stand_in
    function.__code__ = _CODE
    function.__defaults__ = function.__kwdefaults__ = None


def _replace_everywhere(name: str, constant: object, returns: object) -> None:
    for module in [*sys.modules.values()]:
        if module.__name__.startswith(PACKAGE) and vars(module).get(name) is constant:
            setattr(module, name, returns)
