"""Learning to ideate: what an idea is worth, and, from there, ideas that are worth more."""
