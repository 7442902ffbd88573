"""A run whose stages are asked for one after the other, as Dagster's steps do."""

from collections.abc import Collection
from queue import SimpleQueue

from docindex_dagster.core.errors import DocindexError
from docindex_dagster.pipeline.source_run import SourceRun
from docindex_dagster.runner.entries import StageEntry
from docindex_dagster.runner.run import reason_of, steps

NOT_RUN = "the run ended before this stage"


class SteppedRun:
    """Runs the stages of a source as far as the entries that its caller asks for need; others may run ahead."""

    def __init__(self, run: SourceRun, selected: Collection[str], waiting: Collection[str] = ()) -> None:
        """Run no stage yet.

        Args:
            run: which holds the lock of its source.
            selected: names of the stages to run.
            waiting: names of stages that do not run before they are asked for.
        """
        self._reported: SimpleQueue[StageEntry] = SimpleQueue()
        self._steps = steps(run, self._reported.put, is_complete=True, selected=selected)
        self._waiting = waiting
        self._entries: dict[str, StageEntry] = {}
        self._begun = set[str | None]()  # of the stages that run in this thread
        self._next: str | None = None
        self._error: Exception | None = None
        self._advance()

    def entry(self, stage: str) -> StageEntry:
        """Run the stages until one has reported, and return what it did.

        Raises:
            DocindexError: it failed, or did not run because another one did.
            Exception: any other error of the stage.
        """
        while stage not in self._entries and not (self._next is None and self._reported.empty()):
            is_due = stage not in self._begun and (self._next == stage or self._next not in self._waiting)
            if self._reported.empty() and is_due:
                self._advance()
            else:
                done = self._reported.get()
                self._entries[done.stage] = done
        found = self._entries.get(stage)
        if found is not None and not found.failure:
            return found
        error = self._error
        is_reported = any(not entry.has_ended_well for entry in self._entries.values())
        if error is not None and (found.failure == reason_of(error) if found else not is_reported):
            raise error
        raise DocindexError(found.failure if found else NOT_RUN) from error

    def close(self) -> None:
        """Stop where the run is."""
        self._steps.close()

    def _advance(self) -> None:
        self._begun.add(self._next)
        try:
            self._next = next(self._steps)
        except StopIteration:
            self._next = None
        except Exception as error:  # noqa: BLE001 raised where its stage is asked for
            self._next, self._error = None, error
