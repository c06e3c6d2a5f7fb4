"""Document erasure: finding a document's traces in any text, then rewriting the record without
the traces."""
