"""Specifications of which files belong to a source."""
