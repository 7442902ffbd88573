"""The expressions of the dashboard for Grafana."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[3] / "deploy" / "grafana" / "docindex.json"
_METRIC = re.compile(r"\b(?:docindex|process)_[a-z_]+")
_OF_SERIES = re.compile(r"_(?:bucket|count|sum)$")


def load() -> dict[str, Any]:
    """The dashboard."""
    dashboard: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return dashboard


def expressions() -> Iterator[tuple[str, str]]:
    """The title of the panel and the text of each expression."""
    for panel in load()["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]


def metrics_of(expression: str) -> set[str]:
    """The metrics that an expression asks for, as `/metrics` names them in `HELP`."""
    return {_OF_SERIES.sub("", name) for name in _METRIC.findall(expression)}


def filled_in(expression: str) -> str:
    """An expression with values in the place of Grafana's variables."""
    values = {"$__rate_interval": "30s", "$job": ".*", "$instance": ".*"}
    for name, value in values.items():
        expression = expression.replace(name, value)
    assert "$" not in expression
    return expression
