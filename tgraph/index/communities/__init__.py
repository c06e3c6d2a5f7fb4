"""Communities of entities."""
