"""Jobs requested over HTTP. Each is a child process that runs what the command line runs, one at a time.

A job is a run in the journal (`runner/journal.py`), so a restarted server finds it again.
"""
