"""An index run: documents in, a published graph out."""
