"""The assets, a module a group. A body calls the library and returns the table with its metadata."""
