"""A question to a graph: the method of its mode, the stages on record, the answer."""
