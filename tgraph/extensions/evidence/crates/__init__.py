"""Session packages: verification and replay of a session without its graph."""
