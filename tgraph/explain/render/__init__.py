"""What draws the values of ``tgraph``: as text, as HTML, as pictures, and in a notebook."""
