"""Concepts: what documents speak of that is no symbol, and how it hangs together."""
