"""Imports that wait until they are needed."""

import sys
from importlib.util import find_spec, module_from_spec
from typing import Any


def defer(package: str) -> None:
    """Let a package's modules be imported while its own `__init__` waits until something of it is asked for.

    One that is imported already, or missing, is left alone. `importlib.util.LazyLoader` would not do: it runs the
    package for the first of its modules.

    Args:
        package: its name, without dots.
    """
    spec = find_spec(package) if package not in sys.modules else None
    if spec is None or spec.loader is None:
        return
    loader, module = spec.loader, module_from_spec(spec)

    def load(name: str) -> Any:
        del vars(module)["__getattr__"]
        loader.exec_module(module)
        return getattr(module, name)

    vars(module)["__getattr__"] = load  # as PEP 562 has it
    sys.modules[package] = module
