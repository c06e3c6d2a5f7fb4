"""Knowledge vectors with nearest-neighbour search."""
