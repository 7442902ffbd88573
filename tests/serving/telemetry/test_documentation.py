"""Test that the monitoring page names the setting that includes texts in traces."""

from pathlib import Path

from docindex_dagster.core.settings import ServeSettings

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "monitor-a-server.md"


def test_the_setting_that_lets_texts_into_traces_is_off():
    assert ServeSettings().trace_texts is False
    assert "serve.trace_texts" in PAGE.read_text(encoding="utf-8")
