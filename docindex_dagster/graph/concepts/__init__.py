"""Concepts: topics that documents mention but that are not symbols, and the relations between them."""
