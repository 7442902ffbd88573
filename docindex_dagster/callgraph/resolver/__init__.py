"""Name resolution and type inference as mutually recursive queries."""
