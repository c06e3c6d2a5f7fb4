"""Retrieval from question to ranked candidates: modes, underlying searches, texts, filters."""
