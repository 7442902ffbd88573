"""Answers with sources: prompts, citations that are checked without a model, conversations, answers without a model."""

DEFAULT_TOKENS = 8000
"""Of passages: more bring little for what they cost (benchmarks/README.md)."""
