"""Asking a graph: the mode's method, recorded stages, the answer."""
