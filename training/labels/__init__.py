"""Questions whose answers are known without anybody who labels them, from the history and the texts of repositories."""
