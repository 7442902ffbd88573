"""From the files of a source to what searches use: a list of stages, which everything that indexes runs.

`stage` says what a stage is, `stages` lists them in their order, a module each says what one does, and `run` runs all
of them over a source. How Dagster shows them as assets is not here.
"""
