"""What users do not want indexed as it is: they cancelled the run of it. Sensors ask for it once it changes."""

import dagster as dg

from docindex_dagster.core.errors import DocindexError
from docindex_dagster.core.settings import Settings
from docindex_dagster.defs.resources import PARTITION_TAG
from docindex_dagster.defs.sensors.due import DECLINED_TAG
from docindex_dagster.defs.sensors.files import state_now
from docindex_dagster.sources import registry


def decline(instance: dg.DagsterInstance, settings: Settings, run: dg.DagsterRun) -> None:
    """Note in a run that was cancelled what there was of its source at that time, as the sensors see it."""
    source = registry.sources(settings).get(run.tags.get(PARTITION_TAG, ""))
    if source is None:
        return
    try:
        state = state_now(source)
    except (DocindexError, OSError):  # it cannot be read: what it is later is something else
        return
    instance.add_run_tags(run.run_id, {DECLINED_TAG: state})
