"""The parts of the resolver: each follows names in one way, and asks the others for the rest."""
