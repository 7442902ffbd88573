"""Import and export of SCIP, an open format in which compiler-based indexers record what each name refers to."""
