"""The IO manager of what stages make: tables of a source, as the storage of each stage says."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import PrivateAttr

from docindex_dagster.core.errors import StoreError
from docindex_dagster.core.layout import Layout
from docindex_dagster.pipeline.stages import by_name

TABLES = "tables"
"""The key of the IO manager that keeps what stages make."""


# Of tables on the disk. What is larger, later steps read back: a run would hold all that it makes until its end.
_MOST_HANDED_ON = 16 << 20


@dataclass(slots=True)
class Made:
    """The value of a stage, whose tables are written.

    Attributes:
        value: for the next steps of this run; None once it was taken, since Dagster holds this until the run ends.
        is_rewritten: whether the tables held another value before.
    """

    value: Any
    is_rewritten: bool

    def take(self) -> Any:
        """The value; let go of it."""
        value, self.value = self.value, None
        return value


class StageTables(dg.ConfigurableIOManager):
    """Keeps what stages make in tables of its source, and gives it to the next stages: from memory within a run."""

    home: str
    _made: dict[tuple[str, str], Any] = PrivateAttr(default_factory=dict)

    def handle_output(self, context: dg.OutputContext, obj: Made) -> None:
        """Hand the value on, unless it is large, and say how large its tables are."""
        value = obj.take()
        storage = by_name()[context.asset_key.path[-1]].storage
        layout = Layout(Path(self.home))
        paths = [layout.table(table, context.partition_key) for table in (storage.tables if storage else ())]
        size = sum(path.stat().st_size for path in paths)
        if size <= _MOST_HANDED_ON:
            self._made[context.run_id, context.asset_key.path[-1]] = value
        context.add_output_metadata({"bytes": size, "table_rewritten": obj.is_rewritten})

    def load_input(self, context: dg.InputContext) -> Any:
        """What an earlier step of this run made in this process; else what the tables hold.

        Raises:
            StoreError: the asset has not been materialised for this source.
        """
        made_by = context.upstream_output.run_id if context.upstream_output else ""
        made = self._made.get((made_by, context.asset_key.path[-1]))
        if made is not None:
            return made
        storage = by_name()[context.asset_key.path[-1]].storage
        value = storage.read(Layout(Path(self.home)), context.partition_key) if storage else None
        if value is None:
            asset = context.asset_key.to_user_string()
            raise StoreError(f"{asset} of {context.partition_key} is missing or damaged: materialise it first")
        return value
