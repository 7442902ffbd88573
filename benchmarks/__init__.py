"""Speed and quality, measured by commands that anyone can run. See README.md."""
