"""Tests of a deployment on several machines, simulated with real processes on one: see CONTRIBUTING.md."""
