"""`python -m docindex_dagster.cli`."""

from docindex_dagster.cli import main

if __name__ == "__main__":
    main()
