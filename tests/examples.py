"""The example packages of the documentation, installed as a user would install them."""

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

_DOCS = Path(__file__).parent.parent / "docs"
_CLI = (sys.executable, "-m", "docindex_dagster.cli")
_PIP = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
_OFFLINE = ("--no-deps", "--no-build-isolation", "--no-index")


def install(folder: Path, page: str, heading: str = "", broken: Sequence[str] = (), code: str = "") -> Path:
    """Install the first example of a page or section with pip, and return the value for `PYTHONPATH`.

    Args:
        folder: where the package is written and installed.
        page: path of a file in docs.
        heading: heading of the section, including its `#` characters.
        broken: additional entry points in the example's group, each named after its target in `code`.
        code: source of a second module.
    """
    text = (_DOCS / page).read_text()
    part = text.partition(heading)[2] if heading else text
    project = next(block for block in _blocks(part, "toml") if "[project]" in block)
    module = tomllib.loads(project)["project"]["name"].replace("-", "_")
    project += "".join(f'{name} = "{module}_broken:{name}"\n' for name in broken)
    project += '[tool.hatch.build.targets.wheel]\ninclude = ["*.py"]\n'
    package, site = folder / "package", folder / "site"
    package.mkdir()
    (package / "pyproject.toml").write_text(project)
    (package / f"{module}.py").write_text(_blocks(part, "python")[0])
    if code:
        (package / f"{module}_broken.py").write_text(code)
    subprocess.run([*_PIP, *_OFFLINE, "--target", str(site), str(package)], check=True)
    return site


def docindex(project: Path, site: Path | None, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run a command on a project, with the packages of `site` importable."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("DAGSTER", "DOCINDEX"))}
    paths = os.pathsep.join(filter(None, [str(site or ""), os.environ.get("PYTHONPATH")]))
    return subprocess.run(
        [*_CLI, *arguments],
        cwd=project,
        env={**inherited, "DOCINDEX_TRUST": "1", **variables, "PYTHONPATH": paths},
        text=True,
        capture_output=True,
        check=False,
    )


def _blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
