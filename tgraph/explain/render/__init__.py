"""Draws values: as text, as HTML, as pictures, and in a notebook."""
