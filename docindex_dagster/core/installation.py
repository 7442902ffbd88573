"""How docindex was installed, in a clone or from a wheel, and so how an extra of it is installed."""

import json
from importlib.metadata import PackageNotFoundError, distribution

DISTRIBUTION = "docindex-dagster"
"""Its name on the package index, where `docindex` is another project."""


def needs_extra(what: str, extra: str) -> str:
    """A message for what lacks an optional dependency: how to install it."""
    if is_clone():
        return f"{what} needs an extra: pip install '.[{extra}]' in the clone of docindex"
    return f"{what} needs an extra: pip install '{DISTRIBUTION}[{extra}]'"


def is_clone() -> bool:
    """Whether it was installed from a folder, as pip notes (PEP 610), or is run from one without being installed."""
    try:
        noted = distribution(DISTRIBUTION).read_text("direct_url.json")
    except PackageNotFoundError:
        return True
    return noted is not None and "dir_info" in json.loads(noted)
