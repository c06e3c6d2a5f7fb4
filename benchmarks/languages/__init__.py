"""Question sets in languages other than English, and how well they are answered."""
