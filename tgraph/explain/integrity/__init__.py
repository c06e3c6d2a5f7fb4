"""Whether the record is as it was sealed: entries, signatures, erasures, the check."""
