"""Reports on communities."""
