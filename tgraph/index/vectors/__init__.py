"""Vectors of what is known, and the search for the nearest."""
