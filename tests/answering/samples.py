"""Sample passages."""

from docindex_dagster.answering.passages import Passage


def passage(number: int, text: str, path: str = "lib/pump.py", first: int = 1, **other) -> Passage:
    """Return a passage of a file that starts at line `first`."""
    values = {
        "source": "library/sample",
        "kind": "function",
        "name": "pump",
        "language": "python",
        "score": 1.0,
        "tokens": 0,
        "chunk_ids": (f"chunk-{number}",),
        "stale": False,
        **other,
    }
    return Passage(number=number, path=path, start_line=first, end_line=first + text.count("\n"), text=text, **values)
