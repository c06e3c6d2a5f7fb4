"""Knowledge written in the formats of others: RDF, GraphML, CSV, GraphRAG's tables, notes."""
