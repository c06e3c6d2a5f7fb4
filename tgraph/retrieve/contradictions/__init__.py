"""Contradicting facts, and notes for answers resting on such facts."""
