"""The IO manager of the intermediate tables: a Parquet file for each asset and source."""

from pathlib import Path

import dagster as dg
import pyarrow as pa

from docindex_dagster import tables
from docindex_dagster.errors import StoreError
from docindex_dagster.layout import Layout


class ParquetTables(dg.ConfigurableIOManager):
    """Writes a stamped table unless its file holds the same version already; reads it back for the next asset."""

    home: str

    def handle_output(self, context: dg.OutputContext, obj: pa.Table) -> None:
        """Replace the file as a whole."""
        path = Layout(Path(self.home)).table(context.asset_key.path[-1], context.partition_key)
        is_rewritten = tables.write(path, obj)
        context.add_output_metadata({"bytes": path.stat().st_size, "table_rewritten": is_rewritten})

    def load_input(self, context: dg.InputContext) -> pa.Table:
        """Read the file.

        Raises:
            StoreError: the asset has not been materialised for this source.
        """
        asset = context.asset_key.path[-1]
        table = tables.read(Layout(Path(self.home)).table(asset, context.partition_key))
        if table is None:
            raise StoreError(f"{asset} of {context.partition_key} is missing or damaged: materialise it first")
        return table
