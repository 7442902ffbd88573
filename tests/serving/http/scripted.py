"""A project with a scripted test model."""

from pathlib import Path
from typing import Any

from docindex_dagster.llm.chat import Delta, Item, Usage
from tests.llm.chats import MODEL, OPENAI, ChatServer

PUMP = "How is a pump started?"
ANSWER = 'They say "open the valve first, then prime it with water" [1]. It is blue [99].'
THOUGHT = "Let me look [1]."
WORDS: list[Item] = [Delta(ANSWER[:30]), Delta(ANSWER[30:]), Usage(700, 20)]


def write_settings(root: Path, further: str = "") -> None:
    """Write settings with the project's sources and any further settings."""
    sources = '[[source]]\nkind = "library"\npath = "manual"\n\n[[source]]\nkind = "git"\npath = "shop"\n'
    (root / "docindex.toml").write_text(f"{further}\n{sources}")


def use_model(root: Path, address: str, *, model: str = MODEL, timeout_s: float = 5, further: str = "") -> None:
    """Configure the project to use a test model server."""
    llm = f'provider = "openai"\nmodel = "{model}"\nbase_url = "{address}/v1"\nretries = 0\ntimeout_s = {timeout_s}'
    write_settings(root, f"[llm]\n{llm}\n{further}\n")


def script(chats: ChatServer, *items: Item, **how: Any) -> None:
    """Make the model return this answer to every question."""
    chats.replies = [OPENAI.reply(*items, **how)]
