"""docindex: one fresh, searchable index of the code and documentation that a team works with."""

__version__ = "0.1.0"
