"""User SPARQL in a sandbox: guard, process, bounds."""
