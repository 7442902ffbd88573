"""Call graph of source code: extraction of an intermediate representation (IR) and name resolution."""
