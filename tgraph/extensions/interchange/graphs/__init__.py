"""Graphs that others made, read into documents, evidence and communities."""
