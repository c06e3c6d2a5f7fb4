"""Session knowledge at its time: corpus, store, vectors and names."""
