"""Rerankers: for diversity, with a local model, or with a remote API."""
