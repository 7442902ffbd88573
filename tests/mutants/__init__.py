"""What the tests of the call graph notice: each mechanism is taken out in turn. `make mutants`."""
