"""Answering other programs: agents, over the Model Context Protocol. It reads what is published, and writes nothing."""
