"""Dagster definitions; the only package that imports dagster."""
