"""What changes a graph beside index runs: curations and retractions, SPARQL updates, erasures."""
