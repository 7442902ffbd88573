"""A file's text becomes a document: sections of blocks, each with its place in the file."""
