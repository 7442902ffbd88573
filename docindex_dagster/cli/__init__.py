"""`docindex`: the command line. Commands are thin: they load the settings, call the library, and show what it says.

A module holds the commands of one purpose. Heavy modules are imported by the commands that need them, so that
`docindex --help` is instant.
"""


def main() -> None:
    """Run the command line."""
    from docindex_dagster.cli.app import main  # parsing workers import the script that started them

    main()
