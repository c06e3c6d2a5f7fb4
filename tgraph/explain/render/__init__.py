"""Rendering of values: text, HTML, pictures, notebooks."""
