"""The parts of a deployment on several machines, as real processes on this one: see CONTRIBUTING.md."""
