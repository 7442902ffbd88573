"""What is searchable, how each source does, whether the index is up to date, and the page that says so."""
