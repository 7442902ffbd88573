"""Small pictures, drawn by the server as SVG: what a source holds by language, and who calls whom."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from docindex_dagster.core.safe_text import in_line
from docindex_dagster.render.html.templating import drawn

_SHADES = 6  # languages with a shade of their own; the rest shares one
_BAR = 600.0  # its width, in units of its own
_GAP = 1.5
_MOST = 6  # neighbours on a side
_ROW, _BOX_HEIGHT = 26, 20
_SIDE, _MIDDLE, _BETWEEN = 132, 132, 32  # widths: of the boxes, and between them
_CHARACTER = 6.7  # the width of one


@dataclass(frozen=True, slots=True)
class Share:
    """A language's part of a bar."""

    name: str
    count: int
    percent: float
    shade: int
    x: float
    width: float


def shares(counts: Mapping[str, int]) -> list[Share]:
    """The languages of a source, the largest first; small ones together as `other`."""
    largest = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    shown, rest = largest[:_SHADES], largest[_SHADES:]
    if rest:
        shown.append((f"{len(rest)} other", sum(count for _, count in rest)))
    whole = sum(count for _, count in shown) or 1
    found, x = [], 0.0
    for shade, (name, count) in enumerate(shown):
        width = _BAR * count / whole
        found.append(Share(name, count, 100 * count / whole, shade, round(x, 2), round(max(width - _GAP, 0.5), 2)))
        x += width
    return found


def languages(counts: Mapping[str, int]) -> Markup:
    """A bar of the languages of a source by their chunks, with a legend."""
    return drawn("_languages.html", shares=shares(counts), width=_BAR)


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A symbol that calls or is called: its name, where that is written, and how this is known.

    Without `href` it lies outside of the index, or could not be resolved.
    """

    name: str
    path: str
    place: str
    href: str | None
    how: str
    is_sure: bool
    calls: int


@dataclass(frozen=True, slots=True)
class Box:
    """A symbol of the picture: where it is drawn, and where it leads."""

    x: float
    y: float
    width: float
    label: str
    name: str
    href: str | None

    @property
    def middle(self) -> float:
        """The height at which lines meet it."""
        return self.y + _BOX_HEIGHT / 2


def neighbourhood(symbol: str, callers: Sequence[Neighbour], callees: Sequence[Neighbour]) -> Markup | None:
    """A symbol in the call graph: who calls it on the left, what it calls on the right; None where nobody does."""
    if not (callers or callees):
        return None
    rows = max(min(len(callers), _MOST), min(len(callees), _MOST), 1)
    height = rows * _ROW + (_ROW if max(len(callers), len(callees)) > _MOST else 0)
    middle_x = _SIDE + _BETWEEN if callers else 0
    left = _column(callers, 0, rows)
    right = _column(callees, middle_x + _MIDDLE + _BETWEEN, rows)
    width = middle_x + _MIDDLE + (_BETWEEN + _SIDE if callees else 0)
    top = (rows * _ROW - _BOX_HEIGHT) / 2
    centre = Box(middle_x, top, _MIDDLE, _label(symbol, _MIDDLE), symbol, None)
    return drawn(
        "_neighbourhood.html",
        symbol=symbol,
        callers=left,
        callees=right,
        centre=centre,
        more_callers=max(0, len(callers) - _MOST),
        more_callees=max(0, len(callees) - _MOST),
        width=width,
        height=height,
        box_height=_BOX_HEIGHT,
    )


def _column(neighbours: Sequence[Neighbour], x: float, rows: int) -> list[Box]:
    shown = neighbours[:_MOST]
    top = (rows - len(shown)) * _ROW / 2 + (_ROW - _BOX_HEIGHT) / 2
    return [Box(x, top + at * _ROW, _SIDE, _label(one.name, _SIDE), one.name, one.href) for at, one in enumerate(shown)]


def _label(name: str, width: float) -> str:
    """A name that fits into a box: its end says more than its beginning."""
    most = int((width - 12) / _CHARACTER)
    plain = in_line(name)
    return plain if len(plain) <= most else f"…{plain[-(most - 1) :]}"
