"""Reading source code with tree-sitter: languages, symbols, imports."""
