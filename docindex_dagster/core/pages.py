"""The pages of the documentation: the wheel has them beside the package's code, a clone in its `docs`."""

from pathlib import Path

_PACKAGE = Path(__file__).parents[1]


def folder() -> Path | None:
    """Where the pages lie; None where docindex was installed without them."""
    return next((place for place in (_PACKAGE / "docs", _PACKAGE.parent / "docs") if place.is_dir()), None)


def pages() -> dict[str, Path]:
    """The files of the pages by their names, sorted."""
    place = folder()
    return {file.stem: file for file in sorted(place.rglob("*.md"))} if place is not None else {}


def titles() -> dict[str, str]:
    """The title of each page by its name."""
    return {name: _title(file.read_text(encoding="utf-8"), name) for name, file in pages().items()}


def _title(text: str, name: str) -> str:
    return next((line[2:].strip() for line in text.split("\n") if line.startswith("# ")), name)
