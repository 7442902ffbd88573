"""Measure the response time of health while clients abort requests and send them slowly.

    python -m benchmarks.slow_clients [--clients 200] [--requests 200]

Starts `docindex serve` with a token on a project of one page. The output has the milliseconds of health without other
clients, then with clients that abort logins, send half of the headers or the body, send nothing, or send one byte per
second. Half of them have the token.
"""

import argparse
import tempfile
from pathlib import Path

from docindex_dagster.core.settings import CONFIG_NAME, load_settings
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.runner.run import index
from docindex_dagster.sources import registry
from tests.serving.http.server import running
from tests.serving.http.slow_clients import health_ms, slow_clients

_TOKEN = "a-token-that-is-long-enough-0123456789"


def figures(found: list[float]) -> str:
    """Format the median, the 95th percentile and the maximum of sorted milliseconds."""
    return f"median {found[len(found) // 2]:6.1f}  95 % {found[len(found) * 95 // 100]:6.1f}  slowest {found[-1]:6.1f}"


def main() -> None:
    """Print the results."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--clients", type=int, default=200)
    arguments.add_argument("--requests", type=int, default=200)
    asked = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "manual").mkdir()
        (root / "manual" / "page.md").write_text("# Pumps\n\nOpen the valve first.\n")
        (root / CONFIG_NAME).write_text('[[source]]\nkind = "library"\npath = "manual"\n')
        settings = load_settings(root)
        for source in registry.sources(settings).values():
            index(settings, source, StaticEmbedder())
        with running(root, "--no-jobs", environment={"DOCINDEX_SERVE__TOKEN": _TOKEN}) as server:
            port = int(server.url.rpartition(":")[2])
            health_ms(port, 5)
            print(f"health alone, ms:               {figures(health_ms(port, asked.requests))}")
            with slow_clients(port, asked.clients, _TOKEN):
                print(f"health with {asked.clients} clients, ms:    {figures(health_ms(port, asked.requests))}")


if __name__ == "__main__":
    main()
