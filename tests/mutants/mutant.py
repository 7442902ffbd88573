"""A mechanism of the call graph, and how it is taken out of the running program."""

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
    """Instead of its result, a function returns what it is given at a position; that of a method's object is 0."""

    position: int


class Mutant(NamedTuple):
    """A mechanism; `where` is `module:qualified name` in the package, of a function or of a constant."""

    name: str
    what: str
    where: str
    returns: Any = ()  # of a constant, what it is


def take_out(mutant: Mutant) -> None:
    """Let a mechanism say nothing, wherever the program has it.

    Raises:
        AttributeError: the package has no such name; the table has to follow.
        ModuleNotFoundError: it has no such module.
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
    """Of the function itself, since tables and other modules hold it under names of their own."""
    function.__globals__[_STAND_IN] = stand_in
    function.__code__ = _CODE
    function.__defaults__ = function.__kwdefaults__ = None


def _replace_everywhere(name: str, constant: object, returns: object) -> None:
    for module in [*sys.modules.values()]:
        if module.__name__.startswith(PACKAGE) and vars(module).get(name) is constant:
            setattr(module, name, returns)
