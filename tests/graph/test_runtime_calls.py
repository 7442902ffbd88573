"""Calls observed while a program runs, and their edges in the graph."""

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from benchmarks.runtime_calls import Comparison, Pair, Symbols, compare, edges_of
from tests.graph.calls import chunks_of

ROOT = Path(__file__).parents[2]
RECORD = """
import json, sys
from pathlib import Path
from benchmarks.runtime_recorder import Recorder

recorder = Recorder(Path.cwd(), Path("shop"))
recorder.start()
import run
recorder.stop()
json.dump(recorder.recorded(), sys.stdout)
"""


def interpreter() -> str | None:
    """Return a Python 3.13 or later, which the recorder needs, or None."""
    names = (shutil.which(name) for name in (sys.executable, "python3.13", "python3.14"))
    others = sorted(map(str, Path.home().glob(".pyenv/versions/3.1[3-9]*/bin/python")))
    check = "import sys; raise SystemExit(sys.version_info < (3, 13))"
    candidates = (*filter(None, names), *others)
    runs = ((path, subprocess.run([path, "-c", check], capture_output=True, check=False)) for path in candidates)
    return next((path for path, run in runs if run.returncode == 0), None)


def write(root: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(dedent(text).lstrip("\n"), "utf-8")


def recorded(root: Path, files: Mapping[str, str]) -> dict[str, Any]:
    """Record the package `shop` while `run.py` is imported."""
    python = interpreter()
    if python is None:
        pytest.skip("no Python here is 3.13 or later")
    write(root, files)
    done = subprocess.run(
        [python, "-P", "-c", RECORD],
        cwd=root,
        env={"PYTHONPATH": f"{root}:{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def calls(root: Path, text: str, run: str) -> set[tuple[str, int, tuple[str, ...]]]:
    """Return the calls of `shop/a.py` as caller, line and callees."""
    found = recorded(root, {"shop/__init__.py": "", "shop/a.py": text, "run.py": f"from shop import a\n{run}\n"})
    return {(one["caller"][1], one["line"], tuple(name for _, name, _ in one["callees"])) for one in found["calls"]}


def judged(root: Path, files: Mapping[str, str], seen: list[dict[str, Any]]) -> Comparison:
    write(root, files)
    chunks = chunks_of(root)
    ran = [one["caller"] for one in seen]
    return compare({"package": "shop", "ran": ran, "calls": seen}, Symbols.of(chunks), edges_of(chunks))


def call(caller: str, first: int, line: int, *callees: tuple[str, int]) -> dict[str, Any]:
    path = "shop/a.py"
    return {"caller": [path, caller, first], "line": line, "callees": [[path, name, at] for name, at in callees]}


def test_functions_methods_and_classes_are_recorded_by_what_is_called(tmp_path):
    text = """
    class Base:
        def __init__(self): self.total()
        def total(self): ...
    class Cart(Base):
        def __call__(self): ...
    def pay():
        cart = Cart()
        cart.total()
        method = cart.total
        method()
        cart()
    """
    assert calls(tmp_path, text, "a.pay()") == {
        ("pay", 7, ("Cart",)),
        ("Base.__init__", 2, ("Base.total",)),
        ("pay", 8, ("Base.total",)),
        ("pay", 10, ("Base.total",)),
        ("pay", 11, ("Cart.__call__",)),
    }


def test_stars_super_generators_and_coroutines_are_recorded(tmp_path):
    text = """
    import asyncio
    class Base:
        def total(self, *prices, **more): ...
    class Cart(Base):
        def total(self, *prices, **more):
            super().total(*prices, **more)
    def prices():
        yield 1
    async def fetch(): ...
    async def pay():
        given = prices()
        Cart().total(*given, **{})
        await fetch()
    """
    assert calls(tmp_path, text, "import asyncio; asyncio.run(a.pay())") == {
        ("Cart.total", 6, ("Base.total",)),
        ("pay", 11, ("prices",)),
        ("pay", 12, ("Cart",)),
        ("pay", 12, ("Cart.total",)),
        ("pay", 13, ("fetch",)),
    }


def test_a_decorated_function_is_what_it_wraps_and_its_wrapper(tmp_path):
    text = """
    import contextlib
    import functools
    def checked(function):
        @functools.wraps(function)
        def wrapper(*given):
            return function(*given)
        return wrapper
    @checked
    def pay(): ...
    @functools.lru_cache
    def price(): ...
    @contextlib.contextmanager
    def opened():
        yield
    def run():
        pay()
        price()
        with opened(): ...
    """
    assert calls(tmp_path, text, "a.run()") == {
        ("<module>", 8, ("checked",)),
        ("run", 16, ("checked.wrapper", "pay")),
        ("checked.wrapper", 6, ("pay",)),
        ("run", 17, ("price",)),
        ("run", 18, ("opened",)),
    }


def test_what_no_call_expression_of_the_package_names_is_not_recorded(tmp_path):
    text = """
    import functools
    def key(one): return one
    class Cart:
        @property
        def total(self): return 1
        def __enter__(self): ...
        def __exit__(self, *error): ...
        def __add__(self, other): ...
    def run(cart):
        sorted([2, 1], key=key)
        functools.partial(key, 1)()
        with cart: ...
        any(one for one in [cart.total])
        cart + 1
    """
    assert calls(tmp_path, text, "a.run(a.Cart())") == set()


def test_calls_of_other_packages_into_this_one_are_not_recorded(tmp_path):
    assert calls(tmp_path, "def pay(): ...", "a.pay()") == set()


def test_functions_that_ran_are_recorded(tmp_path):
    files = {
        "shop/__init__.py": "",
        "shop/a.py": "def pay(): ...\ndef other(): ...",
        "run.py": "import shop.a as a\na.pay()",
    }

    assert recorded(tmp_path, files)["ran"] == [
        ["shop/__init__.py", "<module>", 1],
        *(["shop/a.py", "<module>", 1], ["shop/a.py", "pay", 1]),
    ]


def test_a_call_is_found_if_an_edge_has_its_caller_and_callee(tmp_path):
    text = """
    class Cart:
        def __init__(self): ...
    def total(): ...
    def pay(unknown):
        Cart()
        [total() for _ in unknown]
        unknown.refund()
    def refund(): ...
    """
    seen = [
        call("pay", 4, 5, ("Cart", 0)),
        call("pay.<genexpr>", 6, 6, ("total", 3)),
        call("pay", 4, 7, ("refund", 8)),
    ]
    found = judged(tmp_path, {"shop/a.py": text}, seen)

    assert found.found == {
        Pair("shop/a.py::pay", frozenset({"shop/a.py::Cart"})),
        Pair("shop/a.py::pay", frozenset({"shop/a.py::total"})),
    }
    assert [(one.line, one.reason, one.instead) for one in found.missing] == [
        (7, "unresolved: the type of the receiver is unknown", "unresolved:refund")
    ]
    assert (found.seen_edges, found.edges) == (2, 2)


def test_a_method_that_overrides_the_one_named_is_possible(tmp_path):
    text = """
    class Base:
        def total(self): ...
    class Cart(Base):
        def total(self): ...
    def pay(cart: Base):
        cart.total()
    """
    found = judged(tmp_path, {"shop/a.py": text}, [call("pay", 5, 6, ("Cart.total", 4))])

    assert found.possible == {Pair("shop/a.py::pay", frozenset({"shop/a.py::Cart.total"}))}
    assert (found.found, found.missing) == (frozenset(), ())
    assert (found.seen_edges, found.edges) == (0, 1)


def test_of_two_functions_of_a_name_the_one_that_ran_is_needed(tmp_path):
    text = """
    import sys
    if sys.platform == "win32":
        def total(): ...
    else:
        def total(): ...
    """
    symbols = Symbols.of(chunks_of(_with(tmp_path, text)))

    assert symbols.nodes(("shop/a.py", "total", 5)) == {"shop/a.py::total~2"}
    assert symbols.nodes(("shop/a.py", "total", 0)) == {"shop/a.py::total", "shop/a.py::total~2"}


def test_a_lambda_is_what_it_is_assigned_to_or_what_is_around_it(tmp_path):
    text = """
    def total(): ...
    price = lambda: total()
    def pay():
        return (lambda: total())()
    """
    symbols = Symbols.of(chunks_of(_with(tmp_path, text)))

    assert symbols.caller(("shop/a.py", "<lambda>", 2)) == "shop/a.py::price"
    assert symbols.callees(("shop/a.py", "<lambda>", 2)) == {"shop/a.py::price"}
    assert symbols.caller(("shop/a.py", "pay.<lambda>", 4)) == "shop/a.py::pay"
    assert symbols.callees(("shop/a.py", "pay.<lambda>", 4)) == frozenset()
    assert symbols.caller(("shop/a.py", "<module>", 1)) == "shop/a.py"


def _with(root: Path, text: str) -> Path:
    write(root, {"shop/a.py": text})
    return root
