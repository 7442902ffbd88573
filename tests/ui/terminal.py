"""Generate the search screenshot in the README: terminal.py PROJECT FILE.svg."""

import sys
from pathlib import Path

from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import load_settings
from docindex_dagster.render import console
from docindex_dagster.search.service import Request, hits_of
from docindex_dagster.stores.reader import open_reader

QUERY = "how does a sensor notice that a file changed"


def main() -> None:
    """Search an indexed project as on a terminal."""
    settings = load_settings(Path(sys.argv[1]))
    found = hits_of(settings, open_reader(Layout(settings.home)), Request(QUERY, top_k=4))
    with Path("/dev/null").open("w") as nowhere:
        console.out = console.VisibleConsole(record=True, width=112, force_terminal=True, file=nowhere)
        console.out.print(f'$ docindex search "{QUERY}" --explain --top-k 4\n', style="bold")
        console.print_results(found, settings.home, with_source=True, explain=True)
        console.out.save_svg(sys.argv[2], title="docindex")


if __name__ == "__main__":
    main()
