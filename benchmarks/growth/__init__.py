"""Cost of runs and searches as an index grows: more sources, or more chunks."""
