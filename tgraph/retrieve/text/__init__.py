"""Text analysis of questions and sentences: expected answers, and how well a sentence answers."""
