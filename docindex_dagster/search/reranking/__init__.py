"""A second look at the best results: for variety, by a model here, or by one behind an API."""
