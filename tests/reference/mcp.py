"""Reference page of the MCP tools."""

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import anyio
from mcp import Client

from docindex_dagster.cli import dagster_runs
from docindex_dagster.core.settings import load_settings
from docindex_dagster.memory.memory import Memory
from docindex_dagster.search.live_index import Live
from docindex_dagster.serving.mcp_server import server
from docindex_dagster.serving.memory_tools import MemoryTools
from docindex_dagster.serving.tools import CollectingTools, Tools
from tests.reference.markdown import sentence, table

_ABOUT = """\
# MCP tools

`docindex mcp` and the endpoint `/mcp` of `docindex serve` offer these tools to agents.
[Add docindex to a coding agent](../how-to/add-docindex-to-a-coding-agent.md) shows how to connect one.

The memory tools require `docindex mcp --domain DOMAIN`, and `note_answer` requires `evaluation.collect = true`.
"""


def page() -> str:
    """Return the page."""
    return "\n".join([_ABOUT, *(text for tool in anyio.run(_tools) for text in _describe(tool))])


async def _tools() -> list[Any]:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "docindex.toml").write_text("[evaluation]\ncollect = true\n")
        live = Live(load_settings(root))
        memory = MemoryTools(Memory(live.settings, "memory/main", code=live))
        made = server(Tools(live, dagster_runs.outcomes), memory, CollectingTools.of(live))
        async with Client(made) as client:
            return list((await client.list_tools()).tools)


def _describe(tool: Any) -> Iterator[str]:
    yield f"## {tool.name}\n"
    yield f"{tool.description}\n"
    required = tool.input_schema.get("required", ())
    rows = (
        (f"`{name}`", _type(schema) + (", required" if name in required else ""), _default(schema), _meaning(schema))
        for name, schema in tool.input_schema["properties"].items()
    )
    yield table(("argument", "type", "default", "meaning"), rows)


def _type(schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_type(each) for each in schema["anyOf"] if each.get("type") != "null")
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'])}"
    return str(schema.get("type", "any"))


def _default(schema: Mapping[str, Any]) -> str:
    default = schema.get("default")
    return "" if default in (None, [], "") else f"`{default}`"


def _meaning(schema: Mapping[str, Any]) -> str:
    return sentence(schema.get("description", ""))
