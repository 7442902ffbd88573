"""The partitions definitions: a partition is a source, or of the asset `memory` a domain."""

import dagster as dg

SOURCES_NAME = "source"
SOURCES = dg.DynamicPartitionsDefinition(name=SOURCES_NAME)
DOMAINS_NAME = "memory_domain"
DOMAINS = dg.DynamicPartitionsDefinition(name=DOMAINS_NAME)
# Of no asset: what machines without a common disk have to know in common.
WITHDRAWN_NAME = "docindex_withdrawn_source"
REQUESTS_NAME = "docindex_requested_run"
