"""Other people's frameworks, on the same engine as the command line; none is imported with it."""
