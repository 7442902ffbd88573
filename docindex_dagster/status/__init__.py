"""State of the index: what is searchable, the state of each source, and whether the index is up to date."""
