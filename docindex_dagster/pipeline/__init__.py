"""Indexing pipeline: the stages that turn the files of a source into searchable stores.

`stage` defines the `Stage` class, `stages` lists all stages in order, and each stage has its own module. `runner.run`
executes them for a source. Their presentation as Dagster assets is elsewhere.
"""
