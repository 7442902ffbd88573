"""Dagster assets, jobs, sensors and resources, and other code that imports dagster."""
