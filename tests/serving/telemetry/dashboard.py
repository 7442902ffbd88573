"""Expressions of the Grafana dashboard."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[3] / "deploy" / "grafana" / "docindex.json"
_METRIC = re.compile(r"\b(?:docindex|process)_[a-z_]+")
_OF_SERIES = re.compile(r"_(?:bucket|count|sum)$")


def load() -> dict[str, Any]:
    dashboard: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return dashboard


def expressions() -> Iterator[tuple[str, str]]:
    """Yield each expression with the title of its panel."""
    for panel in load()["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]


def metrics_of(expression: str) -> set[str]:
    """Return the metrics in an expression, named as in the `HELP` lines of `/metrics`."""
    return {_OF_SERIES.sub("", name) for name in _METRIC.findall(expression)}


def filled_in(expression: str) -> str:
    """Return an expression with Grafana's variables replaced by values."""
    values = {"$__rate_interval": "30s", "$job": ".*", "$instance": ".*"}
    for name, value in values.items():
        expression = expression.replace(name, value)
    assert "$" not in expression
    return expression
