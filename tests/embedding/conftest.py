"""What the tests of embedders share."""

from collections.abc import Iterator

import pytest

from tests.embedding.openai_server import OpenAIServer, serving


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    """A server that speaks OpenAI's API; nothing in the environment says where another one is."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with serving() as server:
        yield server
