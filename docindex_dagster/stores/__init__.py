"""The three stores that serve chunks, and their atomic publication."""
