"""Configuration of coding agents: the entry of `docindex mcp` in their files, and a short instruction.

Agents differ only in data, which is in `catalogue`.
"""
