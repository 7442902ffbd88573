"""Pytest plugin that records a package's calls to itself while its tests run, for Python 3.13 or later.

It requires only the standard library. From the root of the repository, with this repository last on the path:

    PYTHONPATH=src:DOCINDEX python -m pytest -p benchmarks.runtime_recorder --calls-of src/NAME --calls-to CALLS.json

A call is recorded if it is direct: a call expression or decorator in the package, with one of these callees:

- A function or bound method of the package. This includes generators and coroutines, whose body runs later.
- A class of the package, with or without `__init__`. The callee is the class, not an inherited `__init__`.
- An object whose class has a `__call__` function of the package. The callee is this function.

A function wrapped by a decorator (`functools.wraps`, also `lru_cache` and `contextmanager`) has two names: the source
names the wrapped function, but the wrapper runs. Both are recorded as one call with two callees. A call through a
variable, parameter or field that holds a function is also direct.

Not direct, and not recorded, are calls by the interpreter, by C functions and by other libraries (keys of `sorted`,
callbacks of werkzeug, `functools.partial`, threads), and code that runs without a call expression (properties,
operators, `with`, loops, metaclasses, `__init_subclass__`).

`sys.monitoring` reports an event before each call, with the callee and the position, for all call instructions.
PY_START events tell which functions ran at all. Python 3.12 reports no event for calls with `*` or `**`.
"""

import functools
import json
import linecache
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, MethodType
from typing import Any

Place = tuple[str, str, int]
"""The path, qualified name and first line of a function or class."""

_TOOL = 4  # not reserved by the standard library
_FUNCTIONS = frozenset({FunctionType, type(functools.lru_cache(print))})
_WITHOUT_EXPRESSION = frozenset({"__exit__", "__aexit__"})
_monitoring: Any = getattr(sys, "monitoring", None) if sys.version_info >= (3, 13) else None


class Recorder:
    """The calls inside a folder, and the functions that ran there, while recording is active."""

    def __init__(self, root: Path, package: Path) -> None:
        self.root = root.resolve()
        self.package = (root / package).resolve()
        self.calls: set[tuple[Place, int, tuple[Place, ...]]] = set()
        self.ran: set[Place] = set()
        # By id of a code object, kept so that its id stays unique; equal code objects may be of different files.
        self._places: dict[int, tuple[CodeType, Place | None]] = {}
        self._lines: dict[int, list[int]] = {}

    def start(self) -> None:
        """Start recording in all threads.

        Raises:
            RuntimeError: if this Python version does not report callees.
        """
        if _monitoring is None:
            raise RuntimeError("recording calls needs Python 3.13 or later")
        events = _monitoring.events
        _monitoring.use_tool_id(_TOOL, "runtime_recorder")
        _monitoring.register_callback(_TOOL, events.CALL, self._called)
        _monitoring.register_callback(_TOOL, events.PY_START, self._started)
        _monitoring.set_events(_TOOL, events.CALL | events.PY_START)

    def stop(self) -> None:
        """Stop recording."""
        _monitoring.set_events(_TOOL, 0)
        _monitoring.free_tool_id(_TOOL)

    def recorded(self) -> dict[str, Any]:
        """Return the recorded calls in a reproducible order."""
        return {
            "package": self.package.relative_to(self.root).as_posix(),
            "python": sys.version.split()[0],
            "ran": sorted(self.ran),
            "calls": [
                {"caller": caller, "line": line, "callees": callees} for caller, line, callees in sorted(self.calls)
            ],
        }

    def _started(self, code: CodeType, _: int) -> object:
        place = self._place(code)
        if place is not None:
            self.ran.add(place)
        return _monitoring.DISABLE

    def _called(self, code: CodeType, offset: int, called: object, _: object) -> object:
        caller = self._place(code)
        if caller is None:
            return _monitoring.DISABLE
        callees = tuple(self._callees(called))
        if callees:
            line = self._line(code, offset)
            if _is_written(callees[0], linecache.getline(code.co_filename, line)):
                self.calls.add((caller, line, callees))
        return None

    def _callees(self, called: object) -> Iterator[Place]:
        """Return the callee, then the functions that it wraps, if they are in the package.

        The object's own attributes are not used, because a proxy, as in flask, forwards them to another object.
        """
        if type(called) is MethodType:
            called = called.__func__
        if issubclass(type(called), type):
            yield from self._class(called)
        elif type(called) in _FUNCTIONS:
            yield from self._functions(called)
        else:
            own = next((vars(cls)["__call__"] for cls in type(called).__mro__ if "__call__" in vars(cls)), None)
            yield from self._functions(own)

    def _functions(self, function: Any) -> Iterator[Place]:
        while type(function) in _FUNCTIONS:
            place = self._place(function.__code__) if type(function) is FunctionType else None
            if place is not None:
                yield place
            function = vars(function).get("__wrapped__")

    def _class(self, cls: Any) -> Iterator[Place]:
        module, name, line = (
            type.__getattribute__(cls, "__dict__").get("__module__"),
            type.__getattribute__(cls, "__qualname__"),
            type.__getattribute__(cls, "__dict__").get("__firstlineno__", 0),
        )
        file = getattr(sys.modules.get(module), "__file__", None)
        path = self._path(file) if file else None
        if path is not None:
            yield path, _plain(name), line

    def _place(self, code: CodeType) -> Place | None:
        """Return the position of a function of the package, else None."""
        known = self._places.get(id(code))
        if known is None:
            path = self._path(code.co_filename)
            place = (path, _plain(code.co_qualname), code.co_firstlineno) if path else None
            known = self._places[id(code)] = code, place
        return known[1]

    def _path(self, file: str) -> str | None:
        path = Path(file).resolve()
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.package) else None

    def _line(self, code: CodeType, offset: int) -> int:
        if id(code) not in self._lines:
            self._lines[id(code)] = [line or code.co_firstlineno for line, *_ in code.co_positions()]
        return self._lines[id(code)][offset // 2]


def _is_written(callee: Place, line: str) -> bool:
    """Return whether a call is an expression, unlike generator expressions and the end of `with`."""
    name = callee[1].rpartition(".")[2]
    if name in _WITHOUT_EXPRESSION:
        return name in line
    return name == "<lambda>" or not name.startswith("<")


def _plain(qualified: str) -> str:
    return qualified.replace(".<locals>", "")


def pytest_addoption(parser: Any) -> None:
    """Add the options of the plugin."""
    parser.addoption("--calls-of", type=Path, help="Folder of the package to record.")
    parser.addoption("--calls-to", type=Path, help="File for the recorded calls.")


def pytest_load_initial_conftests(early_config: Any) -> None:
    """Start recording before any import of the package."""
    options = early_config.known_args_namespace
    if options.calls_of and options.calls_to:
        early_config.calls_recorder = Recorder(Path.cwd(), options.calls_of)
        early_config.calls_recorder.start()


def pytest_unconfigure(config: Any) -> None:
    """Write the recorded calls."""
    recorder: Recorder | None = getattr(config, "calls_recorder", None)
    if recorder is not None:
        recorder.stop()
        config.known_args_namespace.calls_to.write_text(json.dumps(recorder.recorded(), indent=1), "utf-8")
