"""What a stage made is given to the next one from memory, in the same run alone; else from its table."""

from pathlib import Path

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from docindex_dagster.core import tables
from docindex_dagster.core.errors import StoreError
from docindex_dagster.core.layout import Layout
from docindex_dagster.defs import io_managers
from docindex_dagster.defs.io_managers import Made, StageTables
from tests.defs.conftest import KEY

MADE = tables.stamp(pa.table({"word": ["a", "b"]}), "1")


def stored(manager: StageTables, run_id: str, made: Made | None = None) -> dg.OutputContext:
    """The output of a run in which the chunks were made."""
    output = dg.build_output_context(
        name="result", step_key="chunks", run_id=run_id, asset_key=dg.AssetKey("chunks"), partition_key=KEY
    )
    path = Layout(Path(manager.home)).table("chunks", KEY)
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(MADE, path)
    manager.handle_output(output, made or Made(MADE, True))
    return output


def loaded(manager: StageTables, output: dg.OutputContext | None) -> pa.Table:
    """The chunks, as a step gets them."""
    return manager.load_input(
        dg.build_input_context(upstream_output=output, asset_key=dg.AssetKey("chunks"), partition_key=KEY)
    )


def damage(manager: StageTables) -> None:
    """Leave of the table nothing that can be read."""
    Layout(Path(manager.home)).table("chunks", KEY).write_bytes(b"damaged")


def test_a_later_step_of_the_same_run_gets_what_was_made(tmp_path):
    manager = StageTables(home=str(tmp_path))
    output = stored(manager, "this run")
    damage(manager)

    assert loaded(manager, output) is MADE


def test_what_is_large_is_read_back_and_nothing_holds_it(tmp_path, monkeypatch):
    monkeypatch.setattr(io_managers, "_MOST_HANDED_ON", 0)
    manager, made = StageTables(home=str(tmp_path)), Made(MADE, True)
    output = stored(manager, "this run", made)

    assert made.value is None
    assert loaded(manager, output).equals(MADE)
    assert loaded(manager, output) is not MADE


@pytest.mark.parametrize("run_id", ["another run", None])
def test_another_run_gets_what_the_table_holds(tmp_path, run_id):
    manager = StageTables(home=str(tmp_path))
    stored(manager, "this run")
    other = run_id and dg.build_output_context(step_key="chunks", run_id=run_id, asset_key=dg.AssetKey("chunks"))
    assert loaded(manager, other or None).equals(MADE)

    damage(manager)
    with pytest.raises(StoreError, match="materialise it first"):
        loaded(manager, other or None)
