"""Source code parsing with tree-sitter: languages, symbols and imports."""
