"""The HTTP API: what the command line and agents are answered, for programs and for the page."""
