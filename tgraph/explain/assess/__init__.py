"""Judges answers: whether they are entailed, and which of their sources support them."""
