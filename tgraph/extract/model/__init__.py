"""Extraction, claims and summaries by a language model."""
