"""A module for each mode, or family of modes, and the registry of them all."""
