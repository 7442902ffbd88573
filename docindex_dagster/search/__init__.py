"""From a query to ranked chunks."""
