"""Which language model answers, and whether it can be asked."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from fastapi import APIRouter

from docindex_dagster.serving.http.problems import documented
from docindex_dagster.serving.http.questions import Answering
from docindex_dagster.serving.http.served import Project

router = APIRouter(tags=["ask"])


@dataclass(frozen=True, slots=True)
class LLMStatus:
    """Which language model answers, and whether it can be asked, as far as is known without asking it anything.

    Attributes:
        provider: of the settings; `none` where no model is set.
        model: the one that is asked; null for the provider's default.
        host: of another endpoint than the provider's own, with its port.
        is_configured: whether the settings name it, and its package or program is there.
        is_reachable: whether it answers; null where only a question would show it.
        is_logged_in: whether the key or login is accepted; null where only a question would show it.
        version: of the server, program or client library.
        problem: why it cannot be asked, and what to do; empty where nothing speaks against it.
    """

    provider: str
    model: str | None
    host: str | None
    is_configured: bool
    is_reachable: bool | None
    is_logged_in: bool | None
    version: str | None
    problem: str


@router.get("/llm", responses=documented("settings"))
async def llm(project: Project, answering: Answering) -> LLMStatus:
    """Say which language model answers, and whether it can be asked; what is known may be five seconds old."""
    own = project.settings.llm
    found = await answering.models.availability(own)
    return LLMStatus(
        provider=own.provider,
        model=found.model,
        host=urlsplit(own.base_url).netloc.rpartition("@")[2] if own.base_url else None,
        is_configured=found.is_configured,
        is_reachable=found.is_reachable,
        is_logged_in=found.is_logged_in,
        version=found.version,
        problem=found.problem,
    )
