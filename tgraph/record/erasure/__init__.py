"""Erasure of a document: its traces in any text, and the record rewritten without them."""
