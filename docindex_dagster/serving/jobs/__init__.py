"""Work that is asked for over HTTP: each job is a child process that runs what the command line runs, one at a time.

A record, a file of events and a lock of each job lie in the home, so that a server that is started again knows them.
"""
