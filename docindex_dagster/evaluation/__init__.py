"""How good a search is on the user's own repositories: questions, metrics, intervals, comparisons."""

# Unless a user says otherwise: how many of the newest commits are read, and how many questions are asked, of a source.
COMMITS, QUESTIONS = 1000, 200
