"""The three places that chunks are served from, and their publication as one."""
