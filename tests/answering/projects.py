"""Small project for tests of answers: a repository, a manual, and a library that filters can exclude."""

from collections.abc import Mapping
from pathlib import Path

from docindex_dagster.core.settings import load_settings
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.runner.run import index
from docindex_dagster.search.live_index import Live
from docindex_dagster.sources import registry
from tests.serving.http.conftest import MANUAL, TANK, git

TESTS = "from tank import pump\n\n\ndef test_pump():\n    assert pump(1) == 1\n"
VAULT = "# Vault\n\nThe pump of the vault is opened by the word MARMOT.\n"


def make(root: Path, manual: Mapping[str, str] | None = None) -> Path:
    """Write and index the project. `manual` adds pages to the manual."""
    pages = {"pumps.md": MANUAL, **(manual or {})}
    files = {"shop/tank.py": TANK, "shop/tests/test_tank.py": TESTS, "vault/vault.md": VAULT}
    files |= {f"manual/{name}": text for name, text in pages.items()}
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    shop = root / "shop"
    git(shop, "init", "-q")
    git(shop, "add", "tank.py")
    git(shop, "commit", "-q", "-m", "Add the tank")
    git(shop, "add", ".")
    git(shop, "commit", "-q", "-m", "Test the pump")
    (root / "docindex.toml").write_text(
        "".join(
            f'[[source]]\nkind = "{kind}"\npath = "{path}"\n'
            for kind, path in (("git", "shop"), ("library", "manual"), ("library", "vault"))
        )
    )
    settings = load_settings(root)
    for source in registry.sources(settings).values():
        index(settings, source, StaticEmbedder())
    return root


def live_of(root: Path) -> Live:
    return Live(load_settings(root))
