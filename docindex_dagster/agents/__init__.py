"""Telling coding agents of docindex: the entry of `docindex mcp` in their files, and a short instruction.

What is different from agent to agent is data, in `catalogue`.
"""
