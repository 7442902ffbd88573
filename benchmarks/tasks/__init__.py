"""Bug reports and the files that their fixes changed."""
