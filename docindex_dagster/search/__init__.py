"""Search: from a query to ranked chunks."""
