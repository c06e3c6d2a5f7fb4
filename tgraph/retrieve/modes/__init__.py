"""Mode modules, for a mode or family of modes each, and the mode registry."""
