"""Telling coding agents of docindex: the entry of `docindex mcp` in their files, and a short instruction.

What is different from agent to agent is data, in `catalogue`. Texts are edited in place, so that comments and layout
of others stay, and what was edited is parsed again before it is written.
"""
