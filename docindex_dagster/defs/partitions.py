"""The one partitions definition: a partition is a source."""

import dagster as dg

SOURCES_NAME = "source"
SOURCES = dg.DynamicPartitionsDefinition(name=SOURCES_NAME)
