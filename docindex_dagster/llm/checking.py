"""Looking whether a model can be asked, by a request that costs nothing."""

import asyncio
from collections.abc import Awaitable, Callable

from docindex_dagster.core.errors import LLMError, LLMKeyError, LLMTimeoutError, LLMUnreachableError
from docindex_dagster.llm.chat import Availability

LONGEST_S = 10.0
"""How long a check may take, in seconds."""


def unset(problem: str, model: str | None) -> Availability:
    """Of a model that the settings, or what is installed, do not suffice for."""
    return Availability(is_configured=False, model=model, problem=problem)


async def checked(probe: Callable[[], Awaitable[tuple[str | None, str]]], model: str | None) -> Availability:
    """What a request shows.

    Args:
        probe: makes it, and gives the version of who answers, and what is wrong with the answer; it raises LLMErrors.
        model: the one that is asked.
    """
    is_reachable, is_logged_in, version = True, None, None
    try:
        async with asyncio.timeout(LONGEST_S):
            version, problem = await probe()
        is_logged_in = True
    except TimeoutError:
        is_reachable, problem = False, f"there is no answer within {LONGEST_S:g} s; see llm.base_url"
    except LLMError as error:
        is_reachable, problem = not isinstance(error, (LLMUnreachableError, LLMTimeoutError)), str(error)
        is_logged_in = False if isinstance(error, LLMKeyError) else None
    return Availability(
        is_configured=True,
        is_reachable=is_reachable,
        is_logged_in=is_logged_in,
        version=version,
        model=model,
        problem=problem,
    )
