"""Markdown tables and sentences."""

from collections.abc import Iterable


def row(*cells: str) -> str:
    """Return a row of a table, with its cells on one line."""
    return "| " + " | ".join(" ".join(cell.replace("|", "\\|").split()) for cell in cells) + " |"


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table, or nothing if it has no rows."""
    lines = [row(*cells) for cells in rows]
    names = list(header)
    return "\n".join([row(*names), "|" + "---|" * len(names), *lines, ""]) if lines else ""


def sentence(text: str) -> str:
    """Return a description with a capital first letter and a final period."""
    text = " ".join(text.split())
    text = text[:1].upper() + text[1:]
    return text if not text or text[-1] in ".!?:" else f"{text}."
