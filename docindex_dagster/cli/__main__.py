"""The process of a command: `docindex`, and `python -m docindex_dagster.cli`."""

from docindex_dagster.cli import main
from docindex_dagster.cli.ending import run


def command() -> None:
    """Run the command line, and end the process."""
    run(main)


if __name__ == "__main__":
    command()
