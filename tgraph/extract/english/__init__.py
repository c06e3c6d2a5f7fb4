"""English prose by dependency rules."""
