"""Install the packages of docs/how-to/write-a-plug-in.md as pip would: a module and its metadata."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

from docindex_dagster.core import plugins
from docindex_dagster.pipeline import stages

_PAGE = Path(__file__).parent.parent / "docs" / "how-to" / "write-a-plug-in.md"


def install(folder: Path, heading: str, patch: pytest.MonkeyPatch, *, edit: tuple[str, str] = ("", "")) -> str:
    """Install the example of a section for this process and one test, and return the value for `PYTHONPATH`.

    Args:
        folder: an empty folder.
        heading: heading of the section.
        patch: undoes the installation.
        edit: text to replace in the module, and its replacement.
    """
    part = _PAGE.read_text().partition(f"## {heading}\n")[2]
    (module,) = re.findall(r"```python\n# (\w+)\.py\n", part.partition("\n## ")[0])
    code, project = (re.findall(rf"```{language}\n(.*?)```", part, re.DOTALL)[0] for language in ("python", "toml"))
    about = tomllib.loads(project)["project"]
    (folder / f"{module}.py").write_text(code.replace(*edit))
    info = folder / f"{module}-{about['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {about['name']}\nVersion: {about['version']}\n")
    lines = [
        f"[{group}]\n{name} = {what}\n"
        for group, all_of in about["entry-points"].items()
        for name, what in all_of.items()
    ]
    (info / "entry_points.txt").write_text("".join(lines))
    patch.syspath_prepend(str(folder))
    patch.delitem(sys.modules, module, raising=False)  # left by another test
    forget()
    return str(folder)


def forget() -> None:
    """Clear the cache of installed plug-ins."""
    plugins._entry_point.cache_clear()
    stages.stages.cache_clear()
