"""A session as a package that is checked, and replayed, where its graph is not."""
