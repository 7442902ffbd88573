"""Tests that docstrings of public functions list docindex's own errors and the shape and dtype of arrays."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import docindex_dagster

PACKAGE = Path(docindex_dagster.__file__).parent
ARRAYS = re.compile(r"\b(ndarray|NDArray|Vectors)\b")
SHAPE = re.compile(r"shape|\(\w+(, \w+)*,?\)|a row (a|for each)|one (an?|for each)|per ")
TYPE = re.compile(r"float16|float32|float64|u?int(8|32|64)|bool|whether|Vectors|vector")
Function = ast.FunctionDef | ast.AsyncFunctionDef
Errors = dict[str, set[str]]


def errors_of(trees: list[ast.Module]) -> Errors:
    """Return the error classes of these modules, each with its own name and those of its ancestors."""
    bases = {
        node.name: {base.id for base in node.bases if isinstance(base, ast.Name)}
        for tree in trees
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name.endswith("Error") and not node.name.startswith("_")
    }

    def kinds(name: str) -> set[str]:
        return {name}.union(*(kinds(base) for base in bases.get(name, ())))

    return {name: kinds(name) for name in bases}


TREES = {path.relative_to(PACKAGE): ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))}
ERRORS = errors_of(list(TREES.values()))


@dataclass(frozen=True, slots=True)
class Module:
    """The functions and methods of a module, by class name (if any) and function name."""

    functions: dict[tuple[str, str], Function]
    errors: Errors

    def undocumented(self) -> dict[str, set[str]]:
        """Return the undocumented errors of each public function."""
        public = (key for key in self.functions if not any(name.startswith("_") for name in key))
        found = {".".join(filter(None, key)): self._missing(key) for key in public}
        return {name: missing for name, missing in found.items() if missing}

    def _missing(self, key: tuple[str, str]) -> set[str]:
        listed = self._listed(key)
        return {name for name in self._raised(key, ()) if not self.errors[name] & listed}

    def _listed(self, key: tuple[str, str]) -> set[str]:
        section = (ast.get_docstring(self.functions[key]) or "").partition("Raises:")[2]
        return set(re.findall(r"^\s+(\w+): ", section, re.MULTILINE)) & self.errors.keys()

    def _raised(self, key: tuple[str, str], callers: tuple[tuple[str, str], ...]) -> set[str]:
        """Return the docindex errors that a function raises, directly or through functions of its module."""
        function = self.functions[key]
        raised = {
            node.exc.func.id
            for node in unguarded(function.body)
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and isinstance(node.exc.func, ast.Name)
        } & self.errors.keys()
        for called in self._called(key[0], function):
            if called not in (key, *callers):
                is_private = called[1].startswith("_")
                raised |= self._raised(called, (*callers, key)) if is_private else self._listed(called)
        return raised

    def _called(self, owner: str, function: Function) -> Iterator[tuple[str, str]]:
        for node in unguarded(function.body):
            match node:
                case ast.Call(func=ast.Name(id=name)) if ("", name) in self.functions:
                    yield "", name
                case ast.Call(func=ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name)):
                    if (owner, name) in self.functions:
                        yield owner, name


def module_of(tree: ast.Module, errors: Errors) -> Module:
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    owners: list[tuple[str, ast.Module | ast.ClassDef]] = [("", tree), *((node.name, node) for node in classes)]
    return Module({(name, f.name): f for name, owner in owners for f in owner.body if isinstance(f, Function)}, errors)


def unguarded(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Yield the nodes whose errors propagate: skip nested functions and the bodies of `try` statements."""
    left: list[ast.AST] = list(body)
    while left:
        node = left.pop()
        yield node
        if isinstance(node, ast.Try) and node.handlers:
            left += [*node.orelse, *node.finalbody, *(each for handler in node.handlers for each in handler.body)]
        elif not isinstance(node, Function | ast.Lambda | ast.ClassDef):
            left += ast.iter_child_nodes(node)


def arrays(function: Function) -> bool:
    """Return whether the signature contains an array."""
    every = [*function.args.args, *function.args.kwonlyargs, *function.args.posonlyargs]
    annotations = [argument.annotation for argument in every] + [function.returns]
    return any(ARRAYS.search(ast.unparse(annotation)) for annotation in annotations if annotation is not None)


def without_shape(module: Module) -> list[str]:
    """Return the public functions that take or return an array without documenting its shape and dtype."""
    return [
        ".".join(filter(None, key))
        for key, function in module.functions.items()
        if not any(name.startswith("_") for name in key) and arrays(function)
        if not (SHAPE.search(text := ast.get_docstring(function) or "") and TYPE.search(text))
    ]


# Command-line functions have no callers, and their docstrings are help texts.
@pytest.mark.parametrize("room", sorted({path.parts[0] for path in TREES} - {"cli"}))
def test_what_is_raised_is_documented(room):
    modules = {path: module_of(tree, ERRORS) for path, tree in TREES.items() if path.parts[0] == room}

    assert {str(path): found for path, module in modules.items() if (found := module.undocumented())} == {}


def test_arrays_say_their_shape_and_type():
    modules = {path: module_of(tree, ERRORS) for path, tree in TREES.items()}

    assert {str(path): found for path, module in modules.items() if (found := without_shape(module))} == {}


SAMPLE = '''
class FaultError(Exception): ...
class DeepFaultError(FaultError): ...

def plain():
    raise FaultError("a")

def of_a_helper():
    _helper()

def _helper():
    raise DeepFaultError("b")

def of_a_neighbour():
    listed()

def listed():
    """Do it.

    Raises:
        FaultError: always, of some kind.
    """
    _helper()

def caught():
    try:
        plain()
    except FaultError:
        return

class Tool:
    def method(self):
        self._part()

    def _part(self):
        raise FaultError("c")

def vectors(texts) -> NDArray[np.float32]:
    """The vectors of texts."""

def shaped(texts) -> NDArray[np.float32]:
    """The vectors of texts, shape (texts, dimension), float32."""
'''


def test_the_lint_finds_what_is_left_out():
    tree = ast.parse(SAMPLE)
    module = module_of(tree, errors_of([tree]))

    assert module.undocumented() == {
        "plain": {"FaultError"},
        "of_a_helper": {"DeepFaultError"},
        "of_a_neighbour": {"FaultError"},
        "Tool.method": {"FaultError"},
    }
    assert without_shape(module) == ["vectors"]
