"""Bash: syntax, and the files loaded with `source` and `.`.

Parameters are numbered, and functions are global wherever they are defined. Any word may be the name of a function; a
variable keeps its `$` to distinguish it.
"""

import posixpath
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from docindex_dagster.callgraph.extract.expressions import Expressions, Node, Read, Syntax, text_of
from docindex_dagster.callgraph.ir import (
    FILE,
    UNKNOWN,
    Argument,
    Assignment,
    CallSite,
    Collection,
    Definition,
    Element,
    Expression,
    FileIR,
    Import,
    Name,
    Parameter,
    Union,
)
from docindex_dagster.callgraph.modules import Modules, Search, upwards
from docindex_dagster.callgraph.resolver.values import Resolution, Value, Values, external
from docindex_dagster.callgraph.rules import Hooks, Queries, Rules, Unit

_COMPUTED = re.compile(r"\$\((?:[^()]|\([^()]*\))*\)|\$\{[^{}]*\}|\$\w+|`[^`]*`|[\"']")
_WRITTEN = Search(("{}", "{}.sh", "{}.bash"))
_BEHIND = replace(_WRITTEN, anywhere=("",))  # a path after a computed folder
_LOADING = "source"  # the command that loads a file


def find(modules: Modules, importer: str, module: str) -> Iterator[str]:
    """Yield the file of a path, whose folder may be computed, or all files that match a glob."""
    before = None
    while before != module:
        before, module = module, _COMPUTED.sub("\0", module)
    computed, _, written = module.rpartition("\0")
    path = written.lstrip("/")
    if not path or (computed and not written.startswith("/")) or path.startswith("~"):
        return
    if "*" in path and (several := _matching(modules, importer, path)):
        yield from several
    else:
        yield from (_BEHIND if computed else _WRITTEN).find(modules, importer, path)


def _matching(modules: Modules, importer: str, pattern: str) -> list[str]:
    """Return the files that match a glob, relative to the nearest parent folder of the importer with a match."""
    for folder in upwards(posixpath.dirname(importer)):
        path = posixpath.normpath(posixpath.join(folder, pattern))
        siblings = (known for known in modules.paths if posixpath.dirname(known) == posixpath.dirname(path) != "")
        if found := sorted(known for known in siblings if fnmatchcase(known, path)):
            return found
        pattern = re.sub(r"^(?:\.\.?/)+", "", pattern)
    return []


_NAME = re.compile(r"[A-Za-z_][\w.:-]*|\d+")
_FIRST = re.compile(r"[A-Za-z_][\w.:-]*(?=[\s;]|$)")
_EVALUATING = frozenset({"trap", "eval"})  # commands that run text as code
_ALL = frozenset({"@", "*"})  # parameters


def _word(node: Node, _: Read) -> Expression:
    """Return the name of a function in a shell word, or in the first word of text that runs as code."""
    text = text_of(node).strip("'=").strip()
    if text == ".":
        return Name("source")
    name = (_FIRST.match if _is_code(node) else _NAME.fullmatch)(text)
    return Name(name[0].strip(":").replace("::", ".")) if name else UNKNOWN


def _is_code(node: Node) -> bool:
    around = node.parent
    command = around.parent if around is not None and around.type == "string" else around
    name = command.child_by_field_name("name") if command is not None and command.type == "command" else None
    return text_of(name) in _EVALUATING


def _variable(node: Node, _: Read) -> Expression:
    name = text_of(node)
    return REST if name in _ALL else Name(f"${name}")


_EXPRESSIONS = Expressions(
    names=frozenset({"number"}),
    items={"subscript": "name"},
    through={"command_name": "", "simple_expansion": "", "string": ""},
    either={"expansion": ("0", "-1")},
    collections={"array": ""},
    readers={
        "word": _word,
        "string_content": _word,
        "raw_string": _word,
        "variable_name": _variable,
        "special_variable_name": _variable,
    },
    is_placed=True,
)

SYNTAX = Syntax(("bash",), _EXPRESSIONS)


_MOST = 8  # parameters
REST = Name("$rest")
"""All arguments of a function, or those that remain after `shift`."""
_VARIABLE = re.compile(r"\"?\$\{?\w+\}?\"?")
_COUNT = re.compile(r"[0-9]{1,3}")
_SHIFT = Name("shift")


def with_parameters(ir: FileIR) -> FileIR:
    """Add numbered parameters to the functions of a file; arguments after `shift` are renumbered."""
    functions = [one for one in ir.definitions if one.kind in {"function", "method"}]
    shifts = _Shifts(one.id for one in functions)
    calls = tuple(shifts.call(one) for one in ir.calls)
    return replace(
        ir,
        calls=calls,
        assignments=tuple(shifts.assignment(one) for one in ir.assignments),
        imports=tuple(_imports(ir.imports)),
        parameters=tuple(parameter for one in functions for parameter in _parameters(one)),
    )


def _imports(imports: Iterable[Import]) -> Iterator[Import]:
    """Drop imports of a loop variable, and globs unless a variable is loaded."""
    imports = [*imports]
    has_variable = any(_VARIABLE.fullmatch(one.module) for one in imports)
    for one in imports:
        if not _VARIABLE.fullmatch(one.module) and (has_variable or "*" not in one.module.rpartition("/")[2]):
            yield one


def _called_name(definition: Definition, definitions: Mapping[str, Definition]) -> str:
    """Return the name used to call a function: without the names of enclosing functions."""
    around = definition.parent
    while around and around not in definitions:
        around = around.rpartition(".")[0]
    return definition.qualified.removeprefix(f"{around}.") if around else definition.qualified


def _parameters(function: Definition) -> Iterator[Parameter]:
    for number in range(1, _MOST + 1):
        yield Parameter("", function.id, f"${number}", UNKNOWN, "", function.line, function.byte)


class _Shifts:
    """Tracks `shift` in the statements of a file, to determine which parameter `$1` refers to."""

    def __init__(self, functions: Iterable[str]) -> None:
        self._functions = frozenset(functions)
        self._lines: dict[str, list[int]] = defaultdict(list)  # lines of `shift`, by function
        self._counts: dict[str, list[int]] = defaultdict(lambda: [0])  # parameters shifted after each, by function

    def call(self, one: CallSite) -> CallSite:
        """Return a call with renumbered parameters. Calls must be passed in file order."""
        count = self._counts[one.scope][-1]
        callee = _numbered(one.callee, count) if one.scope in self._functions else one.callee
        values = [argument.value for argument in one.arguments]
        values = values[values.index(one.callee) + 1 :] if one.callee in values else values
        if one.callee is _SHIFT:
            first = values[0].text if values and isinstance(values[0], Name) else "1"
            self._lines[one.scope].append(one.line)
            self._counts[one.scope].append(count + (min(int(first), _MOST) if _COUNT.fullmatch(first) else 0))
        numbered = [part for value in values for part in self._arguments(value, count, one.scope)]
        return one._replace(callee=callee, arguments=tuple(map(Argument, numbered[:_MOST])))

    def assignment(self, one: Assignment) -> Assignment:
        """Return an assignment with renumbered parameters. All calls must have been passed before."""
        count = self._counts[one.scope][bisect_left(self._lines[one.scope], one.line)]
        value = _numbered(one.value, count) if one.scope in self._functions else one.value
        return one._replace(value=value)

    def _arguments(self, value: Expression, count: int, scope: str) -> Iterator[Expression]:
        if scope not in self._functions:
            yield value
            return
        first = _numbered(value, count)
        yield first
        if _is_rest(value) and isinstance(first, Name):
            yield from (Name(f"${number}") for number in range(int(first.text[1:]) + 1, _MOST + 1))


def _is_rest(value: Expression) -> bool:
    return value is REST or (isinstance(value, Union) and value.parts[0] is REST)


def _numbered(value: Expression, count: int) -> Expression:  # noqa: PLR0911 one per form
    """Return an expression with the original numbers of parameters, given the count of shifted ones."""
    match value:
        case Name("$rest"):
            return Name(f"${count + 1}")
        case Element(Name("$rest")) | Name("this"):
            return Union(tuple(Name(f"${number}") for number in range(count + 1, _MOST + 1)))
        case Collection((Name("$rest"),)):
            return Collection((_numbered(Element(REST), count),))
        case Name(text) if text[:1] == "$" and _COUNT.fullmatch(text[1:]) and text != "$0":
            return Name(f"${int(text[1:]) + count}")
        case Union((Name("$rest"), Name(first))) if _COUNT.fullmatch(first):
            return Name(f"${int(first) + count}")
        case Union(parts):
            return Union(tuple(_numbered(part, count) for part in parts))
        case Collection(parts):
            return Collection(tuple(_numbered(part, count) for part in parts))
        case Element(of):
            return Element(_numbered(of, count))
        case _:
            return value


def _outermost(definitions: Mapping[str, Definition]) -> list[Definition]:
    """Place all functions at the top level, since they are global."""
    return [one._replace(parent=FILE, name=_called_name(one, definitions)) for one in definitions.values()]


def _command(callee: Expression) -> Values:
    """Return the external command that a call runs if it reaches no function."""
    return (external(callee.text),) if isinstance(callee, Name) and callee.text[:1] != "$" else ()


def _of_loaded(q: Queries, unit: Unit, name: str) -> Iterator[Value]:
    """Yield a function from a file that this file loads, or that is loaded by a file loading this one."""
    listed = q.in_files(q.program.named, unit, name.rpartition(".")[2])
    named = [part for part in listed if part[0] is not unit and _called_name(part[1], part[0].definitions) == name]
    loaded = q.visible(unit) if named else ()
    if own := [part for part in named if part[0].path in loaded]:
        for part in _last_loaded(q, unit, own):
            yield from q.defined(*part, Resolution.IMPORT)
        return
    loading = dict.fromkeys(other for other, _ in q.in_files(q.program.callers, unit, _LOADING)) if named else ()
    for other in (other for other in loading if other is not unit):
        loaded = q.visible(other)
        found = [part for part in named if part[0].path in loaded] if unit.path in loaded else []
        for part in [part for part in found if part[0] is other] or _last_loaded(q, other, found):
            yield from q.defined(*part, Resolution.PACKAGE)


def _last_loaded(q: Queries, unit: Unit, found: Sequence[tuple[Unit, Definition]]) -> Sequence[tuple[Unit, Definition]]:
    """Return the functions from the files loaded last, among functions with the same name."""
    for one in reversed(unit.imported if len(found) > 1 else ()):
        files = q.program.find_module(unit, one.module)
        if inside := [part for part in found if part[0].path in files]:
            return inside
    return found[-1:]


RULES = Rules(
    "bash",
    find=find,
    sharing="loaded",
    redefines=True,
    has_class_scope=False,
    has_marked_variables=True,
    hooks=Hooks(prepare=with_parameters, place=_outermost, shared=_of_loaded, external_target=_command),
)
