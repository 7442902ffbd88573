"""Search quality on the user's own repositories: questions, metrics, intervals and comparisons."""

# Defaults per source: the number of recent commits to read, and the number of questions to ask.
COMMITS, QUESTIONS = 1000, 200
