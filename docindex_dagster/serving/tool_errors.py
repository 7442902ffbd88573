"""The protocol's server with errors that a model can act on: which argument is wrong, and what it may be.

What the tools do belongs in `tools`; this module only words what went wrong.
"""

from collections.abc import Mapping
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp_types import CallToolResult, InputRequiredResult
from pydantic import ValidationError

from docindex_dagster.core.printable import in_line, shortened

_LONGEST_INPUT = 60  # characters of what was given


class Server(MCPServer):
    """A server whose tools take no argument that they do not know, and word their errors plainly."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool.

        Raises:
            ToolError: there is no such tool or argument, an argument is none that it takes, or the tool failed.
        """
        await self._check_names(name, arguments)
        try:
            return await super().call_tool(name, arguments, context)
        except UnexpectedToolError:
            raise
        except ToolError as error:
            raise ToolError(_sentence(error, name)) from error

    async def _check_names(self, name: str, arguments: Mapping[str, Any]) -> None:
        tools = {tool.name: tool for tool in await self.list_tools()}
        if name not in tools:
            raise ToolError(f"there is no tool {_given(name)}; there are {', '.join(tools)}")
        known = tools[name].input_schema["properties"]
        unknown = [_given(argument) for argument in arguments if argument not in known]
        if unknown:
            raise ToolError(f"{name} has no argument {' and no '.join(unknown[:3])}; it has {', '.join(known)}")


def _sentence(error: ToolError, tool: str) -> str:
    if isinstance(error.__cause__, ValidationError):
        return "; ".join(_mistake(dict(mistake)) for mistake in error.__cause__.errors(include_url=False))
    return str(error).removeprefix(f"Error executing tool {tool}: ")


def _mistake(mistake: Mapping[str, Any]) -> str:
    """What is wrong with one argument, as `top_k should be less than or equal to 50, not 900`."""
    first, *rest = mistake["loc"] or ("arguments",)
    argument = f"{first}{''.join(f'[{part}]' for part in rest)}"
    if mistake["type"] == "missing":
        return f"{argument} is missing"
    message = str(mistake["msg"])
    what = message.removeprefix("Input ") if message.startswith("Input ") else f"is wrong: {message}"
    return f"{argument} {what}, not {_given(mistake['input'])}"


def _given(value: object) -> str:
    return in_line(shortened(repr(value), _LONGEST_INPUT))
