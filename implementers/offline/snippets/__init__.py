"""Building blocks of generated solutions: real functions, whose source text is copied.

A solution is a script that needs nothing of this package, so `source.py` copies the functions that
it uses, with their imports and helpers, out of these modules. That is why the functions here take
and return plain pandas and numpy objects and import each other only from within this package.
"""
