"""Work that is asked for over HTTP: each job is a child process that runs what the command line runs, one at a time.

A job is a run in the journal (`runner/journal.py`), so that a server that is started again knows it.
"""
