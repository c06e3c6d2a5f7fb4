"""A user's SPARQL, in its sandbox: the guard, the process, the barriers around it."""
