"""From candidates to an answer: each step by a language model, and by an embedded method."""
