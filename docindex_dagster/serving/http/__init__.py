"""HTTP API, for programs and for the web page. It offers what the command line and the MCP tools offer."""
