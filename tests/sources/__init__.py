"""Which files a source has, as specifications."""
