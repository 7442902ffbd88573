"""Runs: what brings one source up to date, or takes it out, and the journal of what they did."""
