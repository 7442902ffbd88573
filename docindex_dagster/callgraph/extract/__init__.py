"""Reading a syntax tree into the intermediate representation."""
