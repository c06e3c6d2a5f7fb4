"""What a session knew: the corpus, the store, the vectors and the names as they were."""
