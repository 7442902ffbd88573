"""Generated pages of docs/reference."""

from pathlib import Path

from tests.reference import cli, events, http, mcp, metrics, python, schemas, settings

FOLDER = Path(__file__).parents[2] / "docs" / "reference"
PAGES = {
    "cli.md": cli.page,
    "events.md": events.page,
    "http.md": http.page,
    "mcp.md": mcp.page,
    "metrics.md": metrics.page,
    "python.md": python.page,
    "schemas.md": schemas.page,
    "settings.md": settings.page,
}
