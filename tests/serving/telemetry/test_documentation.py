"""`docs/serving.md` lists the metrics; run as a module, this writes its table anew."""

import re
import tempfile
from pathlib import Path

from docindex_dagster.core.settings import ServeSettings
from tests.serving.telemetry.conftest import families, serving

PAGE = Path(__file__).parents[3] / "docs" / "serving.md"
_TABLE = re.compile(r"\| metric \| type \| what it says \|\n(?:\|.*\n)+")


def table() -> str:
    """The metrics of ours, as a table."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "docindex.toml").write_text("")
        with serving(Path(folder)) as client:
            found = families(client.get("/metrics").text)
    rows = [f"| `{name}` | {kind} | {help_text} |" for name, kind, help_text in found if name.startswith("docindex_")]
    return "\n".join(["| metric | type | what it says |", "|---|---|---|", *rows, ""])


def test_the_metrics_are_listed_as_they_are():
    assert _TABLE.findall(PAGE.read_text(encoding="utf-8")) == [table()]


def test_the_setting_that_lets_texts_into_traces_is_off():
    assert ServeSettings().trace_texts is False
    assert "serve.trace_texts" in PAGE.read_text(encoding="utf-8")


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(_TABLE.sub(lambda _: table(), text), encoding="utf-8")
