"""A small project with a library and a repository, in which an attacker wrote some files and commits."""

import os
import shutil
import subprocess
from pathlib import Path

from docindex_dagster.core.settings import Settings, load_settings
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.runner.run import index
from docindex_dagster.sources import registry

TANK = '''\
"""Tanks of water."""


class Tank:
    """Holds water."""

    def fill(self, litres):
        """Fill the tank from the well."""
        return pump(litres)

    def drain(self, litres):
        """Let water out; the valve is opened slowly."""
        return pump(-litres)


def pump(litres):
    """Move water between the well and a tank."""
    return check(litres)


def check(litres):
    """Refuse what is no amount."""
    if litres == 0:
        raise ValueError(litres)
    return litres
'''
PRESSURE = '''\
"""Pressure in pipes."""

from tank import pump


def test_pressure(litres):
    """Pump and look at the gauge."""
    return pump(litres) * 3
'''
MANUAL = """\
# Pumps

How a pump is started: open the valve first, then prime it with water.

## Stopping

Close the valve slowly, so that no water hammers. See [the list](more/list.md) and [the maker](https://maker.example/x).

| part | wears |
|---|---|
| valve | slowly |

```python
def close(valve):
    return valve.turn(-1)
```
"""
SCRIPT = "<script>document.documentElement.dataset.owned = 'yes'</script>"
HANDLER = "<img src=x onerror=\"document.documentElement.dataset.owned='yes'\">"
BIDI = "\u202e"
HOSTILE_NAME = f"<img src=x onerror=alert(1)> {BIDI}yp.py"
HOSTILE_CODE = f'''\
def attack_{"x"}():
    """{SCRIPT} {HANDLER} {BIDI}reversed marmot"""
    return "javascript:alert(1)"
'''
HOSTILE_PAGE = f"""\
# Marmots {HANDLER} {SCRIPT}

The marmot page: [click](javascript:alert(document.domain)) and [data](data:text/html,{SCRIPT.replace(" ", "")}) and
![picture](https://evil.example/p.png) and [outside](https://evil.example/) and [there](//evil.example/x) and
<https://evil.example/auto>.

{SCRIPT}

{HANDLER}

<a href="javascript:alert(1)" style="position:fixed">raw</a> {BIDI}hidden

```html
{SCRIPT}
```
"""
HOSTILE_SUBJECT = f"Feed the marmots {SCRIPT} {BIDI}"


def make(root: Path) -> Path:
    """Write the files and the settings that declare them, and index nothing."""
    manual, shop = root / "manual", root / "shop"
    (manual / "more").mkdir(parents=True)
    (manual / "pumps.md").write_text(MANUAL)
    (manual / "more" / "list.md").write_text("# List\n\nWhat to look at before a pump is started.\n")
    (manual / "marmots.md").write_text(HOSTILE_PAGE)
    (manual / "yarn.lock").write_text("pump@1.0\n")
    shop.mkdir()
    git(shop, "init", "-q")
    (shop / "tank.py").write_text(TANK)
    (shop / "tests").mkdir()
    (shop / "tests" / "test_pressure.py").write_text(PRESSURE)
    (shop / "windows.py").write_bytes(b"def crlf():\r\n    return 'carriage'\r\n")
    git(shop, "add", ".")
    git(shop, "commit", "-q", "-m", "Add the tank\n\nIt holds water.")
    (shop / HOSTILE_NAME).write_text(HOSTILE_CODE)
    git(shop, "add", ".")
    git(shop, "commit", "-q", "-m", f"{HOSTILE_SUBJECT}\n\n{HANDLER}\n{BIDI}body of it")
    declared = ('kind = "library"\npath = "manual"', 'kind = "git"\npath = "shop"')
    (root / "docindex.toml").write_text("\n\n".join(f"[[source]]\n{one}" for one in declared) + "\n")
    return root


def add_repository(root: Path, name: str, folder: Path) -> None:
    """Add a source: a copy of a folder, as a repository with one commit."""
    shutil.copytree(folder, root / name / folder.name, ignore=shutil.ignore_patterns("__pycache__"))
    git(root / name, "init", "-q")
    git(root / name, "add", ".")
    git(root / name, "commit", "-q", "-m", f"Begin {name}")
    with (root / "docindex.toml").open("a") as settings:
        settings.write(f'\n[[source]]\nkind = "git"\npath = "{name}"\n')


def index_all(root: Path) -> Settings:
    """Index each source without recording runs."""
    settings = load_settings(root)
    for source in registry.sources(settings).values():
        index(settings, source, StaticEmbedder())
    return settings


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "init.defaultBranch=main")
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, env=environment)
