"""Loaders that turn the text of a file into a document: sections of blocks with their positions in the file."""
