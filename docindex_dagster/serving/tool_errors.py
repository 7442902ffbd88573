"""The protocol's server with errors that a model can act on: which argument is wrong, and what it may be.

What the tools do belongs in `tools`, and how mistakes are worded in `operations`.
"""

from collections.abc import Mapping
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp_types import CallToolResult, InputRequiredResult
from pydantic import ValidationError

from docindex_dagster.operations.fields import describe_errors
from docindex_dagster.serving.arguments import unknown_arguments, unknown_tool


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
            raise ToolError(unknown_tool(name, tools))
        if problem := unknown_arguments(name, arguments, tools[name].input_schema["properties"]):
            raise ToolError(problem)


def _sentence(error: ToolError, tool: str) -> str:
    if isinstance(error.__cause__, ValidationError):
        return describe_errors(error.__cause__)
    return str(error).removeprefix(f"Error executing tool {tool}: ")
