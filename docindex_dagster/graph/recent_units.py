"""Units that were made last, so that the next edit of a source reads those files alone that changed.

To read a file back and lay out what it says takes longer than to resolve it, and an edit of one file looks into many
others. In a process that goes on, as one that watches, these are mostly the same ones each time.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from threading import Lock
from typing import NamedTuple

from docindex_dagster.callgraph.offers import Offers
from docindex_dagster.callgraph.program import Units
from docindex_dagster.callgraph.units import Unit

# Of all units together: an object a statement, of which each takes some hundred bytes.
_MOST_STATEMENTS = 200_000


class _Made(NamedTuple):
    unit: Unit
    offers: Offers  # which depend on the file alone
    statements: int


class RecentUnits:
    """The units that were used last, by what they were made from. Threads share them, and change nothing in them."""

    def __init__(self, most: int = _MOST_STATEMENTS) -> None:
        """Keep units with so many statements, at most."""
        self._most = most
        self._made: OrderedDict[str, _Made] = OrderedDict()
        self._statements = 0
        self._lock = Lock()

    def get(self, made_from: str, make: Callable[[], Unit]) -> tuple[Unit, Offers]:
        """The unit that is made from this, and what it offers; `make` makes one that is not known."""
        with self._lock:
            known = self._made.get(made_from)
            if known is not None:
                self._made.move_to_end(made_from)
                return known.unit, known.offers
        unit = make()
        made = _Made(unit, Offers(unit), unit.statements)
        with self._lock:
            if made_from not in self._made:
                self._made[made_from] = made
                self._statements += made.statements
            while self._statements > self._most:
                self._statements -= self._made.popitem(last=False)[1].statements
        return made.unit, made.offers

    def units(self, made_from: Mapping[str, str], make: Callable[[str], Unit]) -> Units:
        """The units of files, by what these are made from; one is taken from here, or made, when it is asked for."""
        return _Known(self, made_from, make)


class _Known(Units):
    """Units with which comes what they offer."""

    def __init__(self, recent: RecentUnits, made_from: Mapping[str, str], make: Callable[[str], Unit]) -> None:
        super().__init__(made_from, make)
        self._recent, self._made_from = recent, made_from

    def offers(self, path: str) -> Offers:
        """What the file of a path offers to others."""
        self[path]
        return super().offers(path)

    def _new(self, path: str) -> Unit:
        unit, self._offers[path] = self._recent.get(self._made_from[path], lambda: self.make(path))
        return unit
