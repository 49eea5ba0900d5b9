"""A package, so that no library that ships one of this name is taken for it."""
