"""Configuration of coding agents: the `docindex mcp` entry in their files, and a short instruction.

Agents differ only in data, which is in `catalogue`.
"""
