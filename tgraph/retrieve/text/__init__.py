"""Questions and sentences: what a question asks for, and how well a sentence answers it."""
