"""Reads records into values: a session's trace, what it rests on, what was said later."""
