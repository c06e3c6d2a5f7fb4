"""Why something is not in an answer, from the record and the store alone."""
