"""How good is the first page? Files, passages, each signal's worth, and the spread over repositories."""
