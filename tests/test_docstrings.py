"""What a public function's docstring has to say: what it raises of ours, and of an array its shape and type."""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from docindex_dagster.core import errors

PACKAGE = Path(errors.__file__).parents[1]
TYPED = {name for name, value in vars(errors).items() if inspect.isclass(value) and issubclass(value, Exception)}
ARRAYS = re.compile(r"\b(ndarray|NDArray|Vectors)\b")
SHAPE = re.compile(r"shape|\(\w+(, \w+)*,?\)|a row (a|for each)|one (an?|for each)|per ")
TYPE = re.compile(r"float16|float32|float64|u?int(8|32|64)|bool|whether|Vectors|vector")
Function = ast.FunctionDef | ast.AsyncFunctionDef


def public_functions() -> Iterator[tuple[str, Function]]:
    """Those of modules and classes whose names and whose owners' names are public, by `path:line name`."""
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name[0] != "_"]
        owners: list[ast.Module | ast.ClassDef] = [tree, *classes]
        for owner in owners:
            for node in owner.body:
                if isinstance(node, Function) and node.name[0] != "_":
                    yield f"{path.relative_to(PACKAGE)}:{node.lineno} {node.name}", node


def own_nodes(function: Function) -> Iterator[ast.AST]:
    """What is in a function, but not in the functions in it."""
    left: list[ast.AST] = list(function.body)
    while left:
        node = left.pop()
        yield node
        if not isinstance(node, Function | ast.Lambda | ast.ClassDef):
            left.extend(ast.iter_child_nodes(node))


def raised(function: Function) -> set[str]:
    """The errors of ours that it raises itself."""
    names = {
        node.exc.func.id
        for node in own_nodes(function)
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and isinstance(node.exc.func, ast.Name)
    }
    return names & TYPED


def documented(function: Function) -> set[str]:
    """The errors that its docstring lists, and those that are of their kind."""
    section = (ast.get_docstring(function) or "").partition("Raises:")[2]
    listed = {name for name in re.findall(r"^\s+(\w+): ", section, re.MULTILINE) if name in TYPED}
    kinds = tuple(getattr(errors, name) for name in listed)
    return {name for name in TYPED if issubclass(getattr(errors, name), kinds)}


def arrays(function: Function) -> bool:
    """Whether an array goes in or out."""
    every = [*function.args.args, *function.args.kwonlyargs, *function.args.posonlyargs]
    annotations = [argument.annotation for argument in every] + [function.returns]
    return any(ARRAYS.search(ast.unparse(annotation)) for annotation in annotations if annotation is not None)


@pytest.mark.parametrize("room", sorted({path.name for path in PACKAGE.iterdir() if path.is_dir()} - {"__pycache__"}))
def test_what_is_raised_is_documented(room):
    # The command line's functions have no callers; their docstrings are its help.
    missing = {
        name: undocumented
        for name, function in public_functions()
        if name.startswith(f"{room}/") and room != "cli" and (undocumented := raised(function) - documented(function))
    }

    assert missing == {}


def test_arrays_say_their_shape_and_type():
    silent = [
        name
        for name, function in public_functions()
        if arrays(function) and not (SHAPE.search(text := ast.get_docstring(function) or "") and TYPE.search(text))
    ]

    assert silent == []
