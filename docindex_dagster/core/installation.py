"""Installation of docindex: its method, the command that adds an extra, and the documentation folder.

A wheel ships the documentation pages inside the package; a clone has them in `docs`.
"""

import json
import re
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Literal

DISTRIBUTION = "docindex-dagster"
"""Name on PyPI, where `docindex` is a different project."""

InstallMethod = Literal["uv tool", "uvx", "pip"]

_COMMANDS: dict[InstallMethod, str] = {
    "uv tool": "uv tool install {}",
    "uvx": "uvx --from {} docindex …",
    "pip": "pip install {}",
}
_IN_CACHE = re.compile(r"/(?:archive-v\d+/[^/]+|environments-v\d+/[0-9a-f]+/[0-9a-f]+)$")
_MADE_BY_UV = re.compile(r"^uv *=", re.MULTILINE)
_PACKAGE = Path(__file__).parents[1]


def missing_extra_message(what: str, extra: str) -> str:
    """Return an error message that tells how to install the extra that `what` needs."""
    name, location = (".", " in the clone of docindex") if is_clone() else (DISTRIBUTION, "")
    requirement = f"'{name}[{extra}]'"
    return f"{what} needs an extra: {_COMMANDS[install_method()].format(requirement)}{location}"


def install_method(prefix: Path | None = None) -> InstallMethod:
    """Return how docindex is installed.

    Args:
        prefix: The prefix of the environment; by default, that of this process.
    """
    prefix = Path(sys.prefix) if prefix is None else prefix
    if prefix.name == DISTRIBUTION and (prefix / "uv-receipt.toml").is_file():
        return "uv tool"
    return "uvx" if is_uvx_environment(prefix) else "pip"


def is_uvx_environment(prefix: Path) -> bool:
    """Return whether `uvx` created an environment in uv's cache, where `uv cache clean` removes it.

    `uv run` also creates one for a script, named after the script; it does not count.
    """
    if not _IN_CACHE.search(prefix.as_posix()):
        return False
    try:
        return _MADE_BY_UV.search((prefix / "pyvenv.cfg").read_text(encoding="utf-8")) is not None
    except (OSError, UnicodeDecodeError):
        return False


def is_clone() -> bool:
    """Return whether docindex was installed from a folder (PEP 610), or runs from one without being installed."""
    try:
        text = distribution(DISTRIBUTION).read_text("direct_url.json")
    except PackageNotFoundError:
        return True
    except UnicodeDecodeError:
        return False
    try:
        origin = json.loads(text or "{}")
    except ValueError:  # truncated by an interrupted installation
        return False
    return isinstance(origin, dict) and "dir_info" in origin


def docs_folder() -> Path | None:
    """Return the documentation folder; None if docindex was installed without it."""
    return next((folder for folder in (_PACKAGE / "docs", _PACKAGE.parent / "docs") if folder.is_dir()), None)


def pages() -> dict[str, Path]:
    """Return the documentation pages by name, sorted by path."""
    folder = docs_folder()
    return {file.stem: file for file in sorted(folder.rglob("*.md"))} if folder is not None else {}


def titles() -> dict[str, str]:
    """Return the titles of the documentation pages by name."""
    return {name: _title(file.read_text(encoding="utf-8"), name) for name, file in pages().items()}


def _title(text: str, name: str) -> str:
    return next((line[2:].strip() for line in text.split("\n") if line.startswith("# ")), name)
