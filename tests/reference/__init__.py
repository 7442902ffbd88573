"""Generate docs/reference from the code."""
