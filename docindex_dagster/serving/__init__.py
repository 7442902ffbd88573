"""Servers for other programs: HTTP, a web page, and the Model Context Protocol (MCP) for agents."""
