"""Generate a typed client from the API's description, type-check it, and search and index with it.

The generator needs a different version of typer than docindex, so it runs in its own environment, build/client. Run as
`python -m tests.serving.http.typed_client`.
"""

import json
import shutil
import subprocess
import tempfile
import venv
from pathlib import Path

from docindex_dagster.serving.http.app import build_api
from tests.serving.http.server import running

ROOT = Path(__file__).parents[3]
BUILD = ROOT / "build" / "client"
REQUIREMENTS = ["openapi-python-client>=0.29,<0.30", "mypy>=1.18", "attrs", "httpx", "types-python-dateutil"]
PAGE = "# Pumps\n\n## Start\n\nHow a pump is started: open the valve first, then prime it with water.\n"
# A user's program: it is typed, so that a wrong name fails the type check.
PROGRAM = """\
import time

from docindex_client import Client
from docindex_client.api.jobs import job
from docindex_client.api.search import search
from docindex_client.api.sources import index
from docindex_client.models import AnswerHit, IndexRequest, Job

with Client(base_url=sys.argv[1], raise_on_unexpected_status=True) as client:
    started = index.sync("library", "manual", client=client, body=IndexRequest())
    assert isinstance(started, Job), started
    state = started.state.value
    while state in ("queued", "running"):
        time.sleep(0.2)
        found = job.sync(started.id, client=client)
        assert isinstance(found, Job), found
        state = found.state.value
    assert state == "succeeded", state
    answer = search.sync(client=client, query="how is a pump started", limit=3)
    assert isinstance(answer, AnswerHit), answer
    hit = answer.items[0]
    print(f"generation {answer.generation}: {hit.path}:{hit.line}, score {hit.score:.3f}")
"""


def main() -> None:
    """Run all steps; any failure exits."""
    environment = BUILD / "environment"
    if not (environment / "bin" / "openapi-python-client").exists():
        venv.create(environment, with_pip=True, clear=True)
        subprocess.run([environment / "bin" / "python", "-m", "pip", "install", "--quiet", *REQUIREMENTS], check=True)
    made = BUILD / "docindex_client"
    shutil.rmtree(made, ignore_errors=True)
    (BUILD / "openapi.json").write_text(json.dumps(build_api().openapi()))
    (BUILD / "config.yml").write_text("package_name_override: docindex_client\npost_hooks: []\n")
    options = ["--path", "openapi.json", "--config", "config.yml", "--meta", "none", "--output-path", str(made)]
    generator = environment / "bin" / "openapi-python-client"
    subprocess.run([generator, "generate", "--fail-on-warning", *options], cwd=BUILD, check=True)
    (BUILD / "program.py").write_text(PROGRAM)
    subprocess.run(
        [environment / "bin" / "python", "-m", "mypy", "--strict", "docindex_client", "program.py"],
        cwd=BUILD,
        check=True,
    )
    with tempfile.TemporaryDirectory(prefix="docindex-client-") as folder:
        root = Path(folder)
        (root / "manual").mkdir()
        (root / "manual" / "pumps.md").write_text(PAGE)
        (root / "docindex.toml").write_text('[[source]]\nkind = "library"\npath = "manual"\n')
        with running(root) as server:
            subprocess.run([environment / "bin" / "python", "program.py", server.url], cwd=BUILD, check=True)


if __name__ == "__main__":
    main()
