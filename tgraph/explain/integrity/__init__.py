"""Record integrity: entries, signatures, erasures and their verification."""
