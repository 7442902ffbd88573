"""Linter for the English of the project: docs, docstrings, comments and messages."""
