"""File watching: indexes sources when their files change."""
