"""The call graph of source code: files to an intermediate representation, and its names to what they stand for."""
