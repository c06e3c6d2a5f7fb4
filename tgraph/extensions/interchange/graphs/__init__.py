"""Import of foreign graphs into documents, evidence and communities."""
