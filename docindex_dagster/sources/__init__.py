"""Source discovery: folder walks, git listings, ignore rules and file classification."""
