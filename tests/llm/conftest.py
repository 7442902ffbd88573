"""A fake LLM, in an environment without the developer's keys and endpoints."""

from collections.abc import Iterator

import pytest

from tests.llm.server import LlmServer, serving

_VENDORS = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL")


@pytest.fixture
def llm() -> Iterator[LlmServer]:
    with serving() as server:
        yield server


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*_VENDORS, "DOCINDEX_LLM__API_KEY"):
        monkeypatch.delenv(name, raising=False)
