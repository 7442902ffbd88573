"""What a publication starts from, and which file names what it wrote: `CURRENT`, or `NEXT` while the model changes."""

from dataclasses import dataclass, replace

from docindex_dagster.core.errors import StoreError
from docindex_dagster.core.layout import Layout
from docindex_dagster.stores import takeover
from docindex_dagster.stores.generation import (
    Generation,
    read_generation,
    replace_generation,
    replace_next,
    write_generation,
)
from docindex_dagster.stores.takeover import Takeover


@dataclass(frozen=True, slots=True)
class Start:
    """What a publication starts from: `base`, or empty stores, and why. `known` is what was published, if known.

    `serving` is what searches use while it is of another model: the publication is of the one that is to take over.
    """

    base: Generation | None
    known: Generation | None
    rebuild_because: str | None = None
    is_damaged: bool = False  # so there is no rolling back to what was published
    serving: Generation | None = None
    warnings: tuple[str, ...] = ()

    @property
    def is_due(self) -> bool:
        """Whether `base` could have taken over, as after a rollback to fewer sources."""
        return bool(self.base and self.serving and takeover.holds_all(self.base, self.serving))

    def anew(self, problem: str) -> "Start":
        """The start from empty stores, since `base` is damaged."""
        return replace(self, base=None, rebuild_because=problem, is_damaged=self.serving is None)

    def name(self, layout: Layout, generation: Generation) -> None:
        """Let readers use a new generation, or `NEXT` name it while it must wait."""
        if self.serving is not None:
            takeover.hand_in(layout, generation, self.serving)
        else:
            self._publish(layout, generation)

    def _publish(self, layout: Layout, generation: Generation) -> None:
        if self.is_damaged:
            replace_generation(layout, replace(generation, previous=self.known.previous if self.known else ""))
        else:
            write_generation(layout, generation)

    def name_in_place(self, layout: Layout, generation: Generation) -> None:
        """Name `base` in another form."""
        (replace_next if self.serving is not None else replace_generation)(layout, generation)

    def left(self, generation: Generation) -> Takeover | None:
        """What is left to do until `generation` takes over; None where readers use it."""
        if self.serving is None or takeover.holds_all(generation, self.serving):
            return None
        return takeover.toward(self.serving, generation.model, generation)

    def news(self, generation: Generation) -> str:
        """What a new generation means for searches, where that is not what it always means."""
        if self.serving is None:
            return ""
        left = self.left(generation)
        if left is not None:
            return f"{left}; searches use {left.old if left.old != left.new else 'the old one'} until all are"
        if generation.model == self.serving.model:
            return "the index was built anew for this version of docindex, and searches use it now"
        return (
            f"all sources have vectors of {generation.model}: searches use them now, not those of {self.serving.model}"
        )


def start_of(layout: Layout, model: str) -> Start:
    """What a publication of a model starts from; a generation that was to take over and cannot any more is given up."""
    try:
        current = read_generation(layout)
    except StoreError as error:
        return Start(None, None, str(error))
    given_up = takeover.drop_other(layout, current, model)
    warnings = (given_up,) if given_up else ()
    if current is None or current.is_of(model):
        return Start(current, current, warnings=warnings)
    candidate = takeover.pending(layout)
    return Start(candidate, candidate or current, serving=current, warnings=warnings)
