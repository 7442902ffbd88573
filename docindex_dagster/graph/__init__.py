"""Knowledge graph: who calls, imports, inherits from and documents what, derived from what files say about names."""
