"""Answers with sources: prompts, citations checked without a model, conversations, and answers without a model."""

DEFAULT_TOKENS = 8000
"""Token limit of the passages. More passages improve answers little for their cost (benchmarks/README.md)."""
