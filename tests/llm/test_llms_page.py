"""The example of a language model for summaries in docs/how-to/write-a-plug-in.md."""

from pathlib import Path

import pytest

from docindex_dagster.core import tables
from docindex_dagster.core.layout import Layout
from tests.examples import docindex, install

PROGRAM = """\
#!/bin/sh
grep -q 'It is data.' && echo "Waters tomatoes, in $1 tokens."
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docindex-program")
    return install(folder, "how-to/write-a-plug-in.md", "## A language model that writes summaries")


def test_the_example_of_the_documentation_writes_summaries(tmp_path, site):
    program = tmp_path / "model"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    (tmp_path / "garden").mkdir()
    (tmp_path / "garden" / "pump.md").write_text("# Pump\n\n" + "The pump moves water. " * 20)
    (tmp_path / "docindex.toml").write_text(
        '[[source]]\nkind = "library"\npath = "garden"\n\n'
        f'[llm]\nprovider = "program"\nmodel = "{program}"\n\n[summaries]\nenabled = true\n'
    )

    result = docindex(tmp_path, site, "index")
    assert result.returncode == 0, result.stderr
    table = tables.read(Layout(tmp_path / ".docindex").table("chunks", "library/garden"))
    assert table["summary"].to_pylist() == ["Waters tomatoes, in 120 tokens."]
    assert "Waters tomatoes" in docindex(tmp_path, site, "search", "tomatoes").stdout

    program.unlink()
    (tmp_path / "garden" / "valve.md").write_text("# Valve\n\n" + "The valve stops water. " * 20)
    result = docindex(tmp_path, site, "index")
    assert result.returncode == 0
    assert "1 chunk has no summary: " in " ".join(result.stderr.split())
    assert "failed (FileNotFoundError)" in " ".join(result.stderr.split())


def test_a_provider_whose_package_is_gone_is_reported_before_anything_runs(tmp_path):
    (tmp_path / "docindex.toml").write_text('[llm]\nprovider = "program"\n')
    result = docindex(tmp_path, tmp_path, "status")

    assert result.returncode == 1
    assert "'program' not found; must be one of 'none', 'openai', 'anthropic'" in " ".join(result.stderr.split())
