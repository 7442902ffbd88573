"""Everything that imports dagster."""
