"""`docindex`: the command line. Commands are thin: they load the settings, call the library, and show what it says.

A module holds the commands of one purpose. Heavy modules are imported by the commands that need them, so that
`docindex --help` is instant.
"""

from docindex_dagster.cli.app import main

__all__ = ["main"]
