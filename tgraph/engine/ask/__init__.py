"""Asking: a question in, an answer out, on record before it is told."""
