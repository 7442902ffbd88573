"""From the syntax tree of a file to its intermediate representation; `file.extract` is all that others call."""
