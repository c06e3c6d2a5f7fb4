"""Writes a record for others: RDF, PROV's formats, TrustGraph's vocabulary."""
