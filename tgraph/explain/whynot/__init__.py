"""Reasons for missing answer content, determined from record and store alone."""
