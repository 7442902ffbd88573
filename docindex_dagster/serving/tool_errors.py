"""MCP server whose errors tell a model how to correct its call: which argument is invalid, and what is allowed.

The work of the tools is in `tools`, and the wording of errors in `operations`.
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
    """A server that rejects unknown arguments and words errors plainly."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool.

        Raises:
            ToolError: unknown tool or argument, invalid argument, or the tool failed.
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
