"""Benchmarks of speed and quality; README.md lists the commands and results."""
