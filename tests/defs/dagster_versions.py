"""Run the definition tests with the oldest and newest Dagster versions that `pyproject.toml` allows.

Each version is installed into its own environment, on top of this environment's packages. A version that is already
installed here is skipped because the regular tests cover it. Run as `python -m tests.defs.dagster_versions`, or with
`--quick` to leave out the tests that execute many runs.
"""

import importlib.metadata
import os
import shutil
import site
import subprocess
import sys
import tomllib
import venv
from collections.abc import Sequence
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[2]
LOWEST = (
    "checks",
    "definitions",
    "index_source",
    "internals",
    "metadata",
    "outcomes",
    "retention",
)
# Our version lags the newest by a few weeks at most, so run only the tests that new versions have broken before.
NEWEST = ("definitions", "internals", "metadata", "retention")


QUICK = ("definitions", "internals", "metadata", "outcomes")


def main() -> int:
    """Return the exit code of the first version whose tests fail, or 0 if all pass."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    allowed = [Requirement(text) for text in project["dependencies"] if Requirement(text).name.startswith("dagster")]
    lowest = [f"{one.name}=={_lower_bound(one)}" for one in allowed]
    newest = [str(one) for one in allowed]
    is_quick = "--quick" in sys.argv[1:]
    return _test("lowest", lowest, QUICK if is_quick else LOWEST) or _test(
        "newest", newest, QUICK if is_quick else NEWEST
    )


def _lower_bound(requirement: Requirement) -> Version:
    (bound,) = [Version(one.version) for one in requirement.specifier if one.operator == ">="]
    return Version(f"{bound.major}.{bound.minor}.{bound.micro}")


def _test(name: str, requirements: list[str], modules: Sequence[str]) -> int:
    python = _environment(ROOT / "build" / "dagster" / name, requirements)
    version = subprocess.run(
        [python, "-c", "import importlib.metadata as m; print(m.version('dagster'))"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    if version == importlib.metadata.version("dagster"):
        sys.stdout.write(f"{name}: Dagster {version}, with which `make test` runs\n")
        return 0
    sys.stdout.write(f"{name}: Dagster {version}\n")
    sys.stdout.flush()
    workers = str((os.cpu_count() or 1) + 2)
    tests = [f"tests/defs/test_{module}.py" for module in modules]
    command = [str(python), "-m", "pytest", "-p", "no:cacheprovider", "--show-capture=no"]
    return subprocess.run([*command, "-n", workers, "--dist", "worksteal", *tests], cwd=ROOT, check=False).returncode


def _environment(folder: Path, requirements: list[str]) -> Path:
    """Create an environment with these packages, falling back to ours, and return its interpreter."""
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    packages = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    ours = [path for path in site.getsitepackages() if Path(path).is_dir()]
    lines = [f"import site; site.addsitedir({path!r})\n" for path in ours]
    (packages / "ours.pth").write_text("".join(lines), encoding="utf-8")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(python),
        "install",
        "--quiet",
        "--no-warn-conflicts",
        "--upgrade",
    ]
    subprocess.run([*pip, *requirements], check=True)
    return python


if __name__ == "__main__":
    sys.exit(main())
