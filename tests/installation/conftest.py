"""The archives of this version and environments that have them installed, built once for all tests."""

import os
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.installation.installed import Installed, made
from tests.installation.pythons import VERSIONS, python
from tests.pdfs import pdf, text_page

ROOT = Path(__file__).parents[2]
TOOLS = Path(os.environ.get("DOCINDEX_TEST_DIST_TOOLS", ROOT / ".venv-dist" / "bin"))


class Built(NamedTuple):
    """The wheel and the sdist."""

    wheel: Path
    sdist: Path


def build(source: Path, target: Path, *kinds: str) -> None:
    """Build archives of a folder with the installed tools and a fixed date."""
    command: list[str | Path] = [TOOLS / "python", "-m", "build", "--no-isolation", "--outdir", target, *kinds, source]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"})


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    if not (TOOLS / "uv").exists():
        pytest.skip(f"there are no tools in {TOOLS}: make test-dist installs them")
    target = tmp_path_factory.mktemp("dist")
    build(ROOT, target, "--sdist", "--wheel")
    (wheel,), (sdist,) = target.glob("*.whl"), target.glob("*.tar.gz")
    return Built(wheel, sdist)


@pytest.fixture(scope="session", params=VERSIONS)
def installed(request: pytest.FixtureRequest, built: Built, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    interpreter = python(request.param)
    if interpreter is None:
        pytest.skip(f"there is no Python {request.param}")
    folder = tmp_path_factory.mktemp(f"python-{request.param}")
    (folder / "home").mkdir()
    made(folder / "env", interpreter, built.wheel, TOOLS)
    return Installed(folder / "env", folder / "home")


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small repository with code, a page, a PDF, and commits that yield questions."""
    folder = tmp_path_factory.mktemp("cloned") / "shop"
    folder.mkdir()
    _git(folder, "init", "--quiet")
    for name, subject, text in _FILES:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
        _git(folder, "add", "--all")
        _git(folder, "commit", "--quiet", "--message", subject)
    (folder / "manual.pdf").write_bytes(pdf([text_page("Pumps", "The pump moves water from the well to the tank.")]))
    return folder


_FILES = (
    ("README.md", "Describe what the shop is for", "# Shop\n\nIt sells pumps. Sessions are signed with a key.\n"),
    (
        "src/sessions.py",
        "Sign the cookies of sessions with a secret key",
        'def sign_session(cookie: str, key: str) -> str:\n    """Sign a cookie."""\n    return cookie + key\n',
    ),
    (
        "src/basket.py",
        "Compute the price of a basket with discounts",
        (
            "from src.sessions import sign_session\n\n\ndef price(basket: list[int]) -> int:\n"
            '    """The price of a basket."""\n    sign_session("a", "b")\n    return sum(basket)\n'
        ),
    ),
    (
        "src/stock.py",
        "Count how many pumps are in stock",
        'def pumps_in_stock() -> int:\n    """Count."""\n    return 3\n',
    ),
)


def _git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "init.defaultBranch=main")
    variables = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, env=variables)
