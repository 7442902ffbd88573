"""The model that answers, kept open between questions, and whether it can be asked."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from docindex_dagster.core.settings import LLMSettings
from docindex_dagster.llm.chat import Availability, ChatModel, prepare
from docindex_dagster.llm.providers import availability, chat_model

_FRESH_S = 5.0  # how long a look at a model is good for


@dataclass(slots=True, eq=False)
class _Opened:
    settings: LLMSettings
    model: ChatModel
    questions: int = 0  # that it is asked at this moment


class Models:
    """Opens the model of the settings when a question needs it, and another one when they name another.

    A model may take long to load, which no other request waits for.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self._opened: _Opened | None = None
        self._opening = asyncio.Lock()
        self._looking = asyncio.Lock()
        self._looked: tuple[LLMSettings, float, Availability] | None = None

    @asynccontextmanager
    async def lent(self, settings: LLMSettings) -> AsyncIterator[ChatModel]:
        """The model of some settings, which stays open for as long.

        Raises:
            LLMError: it cannot be loaded.
        """
        one = await self._of(settings)
        one.questions += 1
        try:
            yield one.model
        finally:
            one.questions -= 1
            await self._close_if_unused(one)

    async def availability(self, settings: LLMSettings) -> Availability:
        """Whether it can be asked, looked for again after some seconds at the soonest."""
        async with self._looking:
            if self._looked is not None:
                known, at, found = self._looked
                if known == settings and time.monotonic() < at + _FRESH_S:
                    return found
            found = await availability(settings)
            self._looked = (settings, time.monotonic(), found)
            return found

    async def aclose(self) -> None:
        """Close what is open."""
        last, self._opened = self._opened, None
        if last is not None:
            await self._close_if_unused(last)

    async def _of(self, settings: LLMSettings) -> _Opened:
        async with self._opening:
            if self._opened is None or self._opened.settings != settings:
                model = chat_model(settings)
                await asyncio.to_thread(prepare, model)
                last, self._opened = self._opened, _Opened(settings, model)
                if last is not None:
                    await self._close_if_unused(last)
            return self._opened

    async def _close_if_unused(self, one: _Opened) -> None:
        if one is not self._opened and not one.questions:
            await one.model.aclose()
