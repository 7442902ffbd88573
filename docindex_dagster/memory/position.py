"""Places in a log."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Position:
    """Where a record lies: a segment, named by its epoch and file, and the bytes of the frame in it."""

    segment: str
    start: int
    end: int

    @property
    def epoch(self) -> str:
        """The epoch of its segment."""
        return self.segment.partition("/")[0]


@dataclass(frozen=True, slots=True)
class Offsets:
    """A state of a log: of each segment, how many of its bytes belong to it."""

    ends: Mapping[str, int] = field(default_factory=dict)

    def end(self, segment: str) -> int:
        """How many bytes of a segment belong to the state; none of one that it does not know."""
        return self.ends.get(segment, 0)

    def covers(self, position: Position) -> bool:
        """Whether a record belongs to the state."""
        return position.end <= self.end(position.segment)
