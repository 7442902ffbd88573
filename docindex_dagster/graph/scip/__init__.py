"""SCIP, the open format in which compilers' indexers say what each name of a program stands for: read and written."""
