"""Runs, which update or remove one source, and the journal that records them."""
