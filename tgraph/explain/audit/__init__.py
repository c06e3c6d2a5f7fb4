"""Questions that auditors ask of the record: named SPARQL audits, SHACL, contradictions, impact."""
