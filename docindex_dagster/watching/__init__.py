"""Following edits as they happen: which folders show them, what the file system says, and what becomes of it."""
