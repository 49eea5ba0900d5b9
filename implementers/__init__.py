"""Acting agents. An implementer is one module or package with a class that has `act`.

Nothing here imports an ideator. Entry points in `pyproject.toml` give the specs their names.
"""
