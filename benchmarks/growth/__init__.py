"""What runs and searches cost as an index grows: more sources, or more chunks."""
