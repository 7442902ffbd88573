"""Object store of a multi-machine deployment: any machine prepares tables, one publishes, and all serve snapshots."""
