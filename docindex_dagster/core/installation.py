"""How docindex was installed: the command that adds an extra, and the folder of the documentation.

A wheel ships the pages of the documentation inside the package; a clone has them in `docs`.
"""

import json
import re
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Literal

DISTRIBUTION = "docindex-dagster"
"""Its name on the package index, where `docindex` is another project."""

Way = Literal["uv tool", "uvx", "pip"]

_COMMANDS: dict[Way, str] = {
    "uv tool": "uv tool install {}",
    "uvx": "uvx --from {} docindex …",
    "pip": "pip install {}",
}
_IN_CACHE = re.compile(r"/(?:archive-v\d+/[^/]+|environments-v\d+/[0-9a-f]+/[0-9a-f]+)$")
_MADE_BY_UV = re.compile(r"^uv *=", re.MULTILINE)
_PACKAGE = Path(__file__).parents[1]


def needs_extra(what: str, extra: str) -> str:
    """A message for what lacks an optional dependency: how to install it."""
    name, place = (".", " in the clone of docindex") if is_clone() else (DISTRIBUTION, "")
    wanted = f"'{name}[{extra}]'"
    return f"{what} needs an extra: {_COMMANDS[way()].format(wanted)}{place}"


def way(prefix: Path | None = None) -> Way:
    """How this program is installed.

    Args:
        prefix: of the environment, by default that of this process.
    """
    prefix = Path(sys.prefix) if prefix is None else prefix
    if prefix.name == DISTRIBUTION and (prefix / "uv-receipt.toml").is_file():
        return "uv tool"
    return "uvx" if is_of_uvx(prefix) else "pip"


def is_of_uvx(prefix: Path) -> bool:
    """Whether an environment is one that `uvx` made in uv's cache, from which `uv cache clean` removes it.

    `uv run` of a script makes one as well, called like the script: that is none.
    """
    if not _IN_CACHE.search(prefix.as_posix()):
        return False
    try:
        return _MADE_BY_UV.search((prefix / "pyvenv.cfg").read_text(encoding="utf-8")) is not None
    except (OSError, UnicodeDecodeError):
        return False


def is_clone() -> bool:
    """Whether it was installed from a folder, as pip notes (PEP 610), or is run from one without being installed."""
    try:
        noted = distribution(DISTRIBUTION).read_text("direct_url.json")
    except PackageNotFoundError:
        return True
    except UnicodeDecodeError:
        return False
    try:
        origin = json.loads(noted or "{}")
    except ValueError:  # written in half: an installation was broken off, and says nothing of a folder
        return False
    return isinstance(origin, dict) and "dir_info" in origin


def pages_folder() -> Path | None:
    """Return the folder of the pages; None if docindex was installed without them."""
    return next((place for place in (_PACKAGE / "docs", _PACKAGE.parent / "docs") if place.is_dir()), None)


def pages() -> dict[str, Path]:
    """Return the files of the pages by name, sorted."""
    place = pages_folder()
    return {file.stem: file for file in sorted(place.rglob("*.md"))} if place is not None else {}


def titles() -> dict[str, str]:
    """Return the titles of the pages by name."""
    return {name: _title(file.read_text(encoding="utf-8"), name) for name, file in pages().items()}


def _title(text: str, name: str) -> str:
    return next((line[2:].strip() for line in text.split("\n") if line.startswith("# ")), name)
