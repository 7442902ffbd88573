"""The object store of a deployment of many machines: tables anywhere, stores in one place, snapshots everywhere."""
