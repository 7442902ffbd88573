"""What a file's result depends on: queries whose answers are tabled, with what was read to find them."""
