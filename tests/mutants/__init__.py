"""Mutation tests for the call graph: disable each mechanism and see which tests fail. Run with `make mutants`."""
