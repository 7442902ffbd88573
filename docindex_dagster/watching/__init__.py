"""Following edits as they happen: which folders tell of them, what the file system says, and what becomes of it."""
