"""Extraction of the intermediate representation from a syntax tree."""
