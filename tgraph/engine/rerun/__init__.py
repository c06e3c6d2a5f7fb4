"""Recorded sessions done again: replayed, verified, measured for influence, evaluated."""
