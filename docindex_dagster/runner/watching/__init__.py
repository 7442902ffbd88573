"""Watching the folders of sources, and indexing what changes in them."""
