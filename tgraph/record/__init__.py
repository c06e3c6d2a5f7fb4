"""What was done, in PROV-O: in index runs and sessions; sealed, chained and signed."""
