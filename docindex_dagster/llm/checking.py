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


async def checked(probe: Callable[[], Awaitable[str]], model: str | None, version: str | None) -> Availability:
    """What a request shows.

    Args:
        probe: makes it, and gives what is wrong with its answer; it raises LLMErrors.
        model: the one that is asked.
        version: of what is asked, or of what asks.
    """
    try:
        async with asyncio.timeout(LONGEST_S):
            problem = await probe()
    except TimeoutError:
        problem = f"there is no answer within {LONGEST_S:g} s; see llm.base_url"
        is_reachable, is_logged_in = False, None
    except LLMError as error:
        problem = str(error)
        is_reachable = not isinstance(error, (LLMUnreachableError, LLMTimeoutError))
        is_logged_in = False if isinstance(error, LLMKeyError) else None
    else:
        is_reachable = is_logged_in = True
    return Availability(
        is_configured=True,
        is_reachable=is_reachable,
        is_logged_in=is_logged_in,
        version=version,
        model=model,
        problem=problem,
    )
