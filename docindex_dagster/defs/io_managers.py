"""The IO managers of the intermediate tables: a Parquet file for each asset and source, and two for a graph."""

from pathlib import Path

import dagster as dg
import pyarrow as pa

from docindex_dagster import tables
from docindex_dagster.errors import StoreError
from docindex_dagster.graph import extraction
from docindex_dagster.graph.extraction import Extraction
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


class GraphTables(dg.ConfigurableIOManager):
    """Writes the graph of a source, and reads it back for its publication."""

    home: str

    def handle_output(self, context: dg.OutputContext, obj: Extraction) -> None:
        """Replace both files."""
        extraction.write(Layout(Path(self.home)), context.partition_key, obj)

    def load_input(self, context: dg.InputContext) -> Extraction:
        """Read both files.

        Raises:
            StoreError: the asset has not been materialised for this source.
        """
        found = extraction.read(Layout(Path(self.home)), context.partition_key)
        if found is None:
            asset = context.asset_key.to_user_string()
            raise StoreError(f"{asset} of {context.partition_key} is missing or damaged: materialise it first")
        return found
