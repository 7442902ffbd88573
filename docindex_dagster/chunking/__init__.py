"""Splitting documents and code into chunks."""
