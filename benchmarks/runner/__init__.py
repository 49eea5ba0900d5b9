"""Runs a matrix of sessions: task × contender × seed, for days if need be."""
