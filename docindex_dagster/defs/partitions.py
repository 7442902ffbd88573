"""The one partitions definition: a partition is a source."""

import dagster as dg

SOURCES = dg.DynamicPartitionsDefinition(name="source")
