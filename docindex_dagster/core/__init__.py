"""Foundations: settings, files, tables, locks and errors. Imports no other package of docindex."""
