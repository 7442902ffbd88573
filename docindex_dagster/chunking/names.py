"""What a file of code says about names, from the tree that it was cut by, or from one of its own."""

from docindex_dagster.callgraph.languages import extract
from docindex_dagster.callgraph.table_rows import Extracted
from docindex_dagster.chunking.draft import Parsed
from docindex_dagster.code.extract import extract as outline_of
from docindex_dagster.code.parse import parse


def extracted(blank: Extracted, text: str, parsed: Parsed | None) -> Extracted:
    """What a file says, or why its structure cannot be had.

    Args:
        blank: of which file it is; why nothing is to be parsed, if nothing is.
        text: what the file holds, without secrets.
        parsed: of this text, where it was parsed already.
    """
    if blank.problem is not None:
        return blank
    try:
        tree, symbols = parsed or _parsed(text, blank.language)
        return blank._replace(file_ir=extract(tree, blank.language, symbols))
    except Exception as error:  # noqa: BLE001 it costs the file its edges, not the run
        return blank._replace(problem=f"{type(error).__name__}: {error}"[:200])


def _parsed(text: str, language: str) -> Parsed:
    data = text.encode()
    tree = parse(data, language)
    return Parsed(tree, outline_of(tree, data, language).symbols)
