"""Judges answers: what they depend on, how good they are, whether they are entailed."""
