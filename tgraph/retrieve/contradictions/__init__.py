"""Facts that disagree, and what an answer that rests on one of them is told."""
