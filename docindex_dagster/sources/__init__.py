"""Which files a source has: walking folders, asking git, ignore rules, classification."""
