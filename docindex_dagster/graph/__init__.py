"""The knowledge graph: from what files say about names to who calls, imports, inherits and documents what."""
