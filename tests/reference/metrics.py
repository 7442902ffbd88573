"""Reference page of the metrics."""

import tempfile
from pathlib import Path

from tests.reference.markdown import table
from tests.serving.telemetry.conftest import families, serving

_ABOUT = """\
# Metrics

`docindex serve` exposes these metrics at `GET /metrics`, in the format of Prometheus or OpenMetrics. Counters start at
zero when the server starts. [Monitor a server](../how-to/monitor-a-server.md) shows how to scrape them.

The 200 sources with the most chunks have a series each; the others share the label `(other)`. Labels never hold
queries, paths, sessions or domains.
"""


def page() -> str:
    """Return the page."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "docindex.toml").write_text("")
        with serving(Path(folder)) as client:
            found = families(client.get("/metrics").text)
    rows = ((f"`{name}`", kind, text) for name, kind, text in found if name.startswith("docindex_"))
    return f"{_ABOUT}\n{table(('metric', 'type', 'meaning'), rows)}"
