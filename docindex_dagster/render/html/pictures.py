"""Small SVG diagrams drawn by the server: the languages of a source, and callers and callees of a symbol."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from docindex_dagster.core.safe_text import on_one_line
from docindex_dagster.render.html.templating import render_template

_SHADES = 6  # languages with a shade of their own; the others share one
_BAR = 600.0  # width in SVG units
_GAP = 1.5
_MAX_NEIGHBOURS = 6  # neighbors per side
_ROW, _BOX_HEIGHT = 26, 20
_SIDE, _MIDDLE, _BETWEEN = 132, 132, 32  # widths of the boxes and of the gap
_CHARACTER = 6.7  # width of a character


@dataclass(frozen=True, slots=True)
class Share:
    """A language's share of the bar."""

    name: str
    count: int
    percent: float
    shade: int
    x: float
    width: float


def shares(counts: Mapping[str, int]) -> list[Share]:
    """Return the shares of the languages, the largest first, with the small ones combined as `other`."""
    largest = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    shown, rest = largest[:_SHADES], largest[_SHADES:]
    if rest:
        shown.append((f"{len(rest)} other", sum(count for _, count in rest)))
    total = sum(count for _, count in shown) or 1
    found, x = [], 0.0
    for shade, (name, count) in enumerate(shown):
        width = _BAR * count / total
        found.append(Share(name, count, 100 * count / total, shade, round(x, 2), round(max(width - _GAP, 0.5), 2)))
        x += width
    return found


def languages(counts: Mapping[str, int]) -> Markup:
    """Draw a bar of a source's languages, by number of chunks, with a legend."""
    return render_template("_languages.html", shares=shares(counts), width=_BAR)


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A caller or callee: its name, the location of the call, and how the call was resolved.

    Without `href`, it is outside the index or unresolved.
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
    """A symbol in the diagram: its position and its link."""

    x: float
    y: float
    width: float
    label: str
    name: str
    href: str | None

    @property
    def middle(self) -> float:
        """The y coordinate at which edges meet the box."""
        return self.y + _BOX_HEIGHT / 2


def neighbourhood(symbol: str, callers: Sequence[Neighbour], callees: Sequence[Neighbour]) -> Markup | None:
    """Draw a symbol with its callers on the left and its callees on the right; None if it has neither."""
    if not (callers or callees):
        return None
    rows = max(min(len(callers), _MAX_NEIGHBOURS), min(len(callees), _MAX_NEIGHBOURS), 1)
    height = rows * _ROW + (_ROW if max(len(callers), len(callees)) > _MAX_NEIGHBOURS else 0)
    middle_x = _SIDE + _BETWEEN if callers else 0
    left = _column(callers, 0, rows)
    right = _column(callees, middle_x + _MIDDLE + _BETWEEN, rows)
    width = middle_x + _MIDDLE + (_BETWEEN + _SIDE if callees else 0)
    top = (rows * _ROW - _BOX_HEIGHT) / 2
    centre = Box(middle_x, top, _MIDDLE, _label(symbol, _MIDDLE), symbol, None)
    return render_template(
        "_neighbourhood.html",
        symbol=symbol,
        callers=left,
        callees=right,
        centre=centre,
        more_callers=max(0, len(callers) - _MAX_NEIGHBOURS),
        more_callees=max(0, len(callees) - _MAX_NEIGHBOURS),
        width=width,
        height=height,
        box_height=_BOX_HEIGHT,
    )


def _column(neighbours: Sequence[Neighbour], x: float, rows: int) -> list[Box]:
    shown = neighbours[:_MAX_NEIGHBOURS]
    top = (rows - len(shown)) * _ROW / 2 + (_ROW - _BOX_HEIGHT) / 2
    return [Box(x, top + at * _ROW, _SIDE, _label(one.name, _SIDE), one.name, one.href) for at, one in enumerate(shown)]


def _label(name: str, width: float) -> str:
    """Shorten a name to the width of a box. Keep its end, which says more than its start."""
    most = int((width - 12) / _CHARACTER)
    plain = on_one_line(name)
    return plain if len(plain) <= most else f"…{plain[-(most - 1) :]}"
