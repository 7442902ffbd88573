"""Records which calls a package makes inside itself while its tests run: a plugin of pytest for Python 3.13 or later.

It needs nothing but the standard library. From the root of the repository, with this repository last on the path:

    PYTHONPATH=src:DOCINDEX python -m pytest -p benchmarks.runtime_recorder --calls-of src/NAME --calls-to CALLS.json

A call is recorded if it is direct: a call expression or a decorator in the package, whose value, when it is called, is

- a function or a bound method of the package: what it runs is that function, generators and coroutines included, of
  which the body runs later; or
- a class of the package, whether it has an `__init__` or not: it is called, and not what its `__init__` inherits; or
- an object whose class has a `__call__` that is a function of the package: it is called.

A function that a decorator wraps (`functools.wraps`, also `lru_cache` and `contextmanager`) has two names: the text
names what is wrapped, the wrapper runs. Both are recorded as one call with two callees. A function that a variable,
parameter or field holds is called by the expression that names this variable: that is direct as well.

Not direct, and not recorded: what the interpreter, a function written in C or another library calls (keys of `sorted`,
callbacks of werkzeug, `functools.partial`, threads), and what runs without a call expression (properties, operators,
`with`, loops, metaclasses, `__init_subclass__`).

`sys.monitoring` gives an event before each call, whatever instruction makes it, with what is called and where; what
starts to run (PY_START) tells which functions ran at all. Python 3.12 gives no event where a function is called with
`*` or `**`.
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

_TOOL = 4  # no tool of the standard library has this number
_FUNCTIONS = frozenset({FunctionType, type(functools.lru_cache(print))})
_WITHOUT_EXPRESSION = frozenset({"__exit__", "__aexit__"})
_monitoring: Any = getattr(sys, "monitoring", None) if sys.version_info >= (3, 13) else None


class Recorder:
    """The calls inside a folder, and what ran there, as long as it listens."""

    def __init__(self, root: Path, package: Path) -> None:
        self.root = root.resolve()
        self.package = (root / package).resolve()
        self.calls: set[tuple[Place, int, tuple[Place, ...]]] = set()
        self.ran: set[Place] = set()
        # By the id of a code, which is there so that no other one gets its id; equal codes may be of different files.
        self._places: dict[int, tuple[CodeType, Place | None]] = {}
        self._lines: dict[int, list[int]] = {}

    def start(self) -> None:
        """Listen to the interpreter, in all threads.

        Raises:
            RuntimeError: this Python does not say what is called.
        """
        if _monitoring is None:
            raise RuntimeError("recording calls needs Python 3.13 or later")
        events = _monitoring.events
        _monitoring.use_tool_id(_TOOL, "runtime_recorder")
        _monitoring.register_callback(_TOOL, events.CALL, self._called)
        _monitoring.register_callback(_TOOL, events.PY_START, self._started)
        _monitoring.set_events(_TOOL, events.CALL | events.PY_START)

    def stop(self) -> None:
        """Listen no longer."""
        _monitoring.set_events(_TOOL, 0)
        _monitoring.free_tool_id(_TOOL)

    def recorded(self) -> dict[str, Any]:
        """What was recorded, in an order that does not depend on the run."""
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
        """What is called, and then what it wraps, as far as it lies in the package.

        Nothing is asked of the object itself: a proxy, such as flask has, answers for another one.
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
        """Where a function of the package stands; None of another one."""
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
    """Whether a call is an expression: there is none for generator expressions and for the end of `with`."""
    name = callee[1].rpartition(".")[2]
    if name in _WITHOUT_EXPRESSION:
        return name in line
    return name == "<lambda>" or not name.startswith("<")


def _plain(qualified: str) -> str:
    return qualified.replace(".<locals>", "")


def pytest_addoption(parser: Any) -> None:
    """The options of the plugin."""
    parser.addoption("--calls-of", type=Path, help="The folder of the package whose calls are recorded.")
    parser.addoption("--calls-to", type=Path, help="The file into which they are written.")


def pytest_load_initial_conftests(early_config: Any) -> None:
    """Begin before anything of the package is imported."""
    options = early_config.known_args_namespace
    if options.calls_of and options.calls_to:
        early_config.calls_recorder = Recorder(Path.cwd(), options.calls_of)
        early_config.calls_recorder.start()


def pytest_unconfigure(config: Any) -> None:
    """Write what was recorded."""
    recorder: Recorder | None = getattr(config, "calls_recorder", None)
    if recorder is not None:
        recorder.stop()
        config.known_args_namespace.calls_to.write_text(json.dumps(recorder.recorded(), indent=1), "utf-8")
