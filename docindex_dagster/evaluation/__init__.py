"""How good a search is on the user's own repositories: questions, metrics, intervals, comparisons."""
