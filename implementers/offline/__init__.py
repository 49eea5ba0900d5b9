"""The offline implementer: acts through the kernel like any other, with no model behind it.

`policy` decides; `history` reads the situation; `understanding` and `editing` turn an idea into a
recipe; `writing`, `pipelines`, `estimators` and `source` turn a recipe into `solution.py`, whose
functions are copied out of `snippets/`.
"""

from mle_ideator.implementers.offline.policy import OfflineImplementer

__all__ = ["OfflineImplementer"]
