"""Memory of what agents say and see, in a log that is synced before it is acknowledged."""
