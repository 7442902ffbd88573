"""Shared fixtures for the tests of embedders."""

from collections.abc import Iterator

import pytest

from tests.embedding.openai_server import OpenAIServer, serving


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    """Start a server that speaks OpenAI's API, and clear the environment of other endpoints."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with serving() as server:
        yield server
