"""Reference solutions of a task: what honest programs score, from a constant to the best known.

A task folder's `references.py` has `references() -> Iterable[Reference]`. Their scores are its
`leaderboard.csv`, from which percentiles and medals follow; no person made them, and nothing calls
them human. They climb a ladder, so that medals tell something:

    weak      constants, linear models, neighbours, trees, defaults, on the columns as they come
    boosting  tuned boosting and forests on the same columns; about a bronze medal
    features  some feature engineering; silver
    full      good features, tuned and blended; gold

    values      Given, Reference
    encoding    any table -> numbers, and means of the target by group that do not leak
    outputs     a metric's targets and losses; predictions -> submission
    models      the estimators of each rung
    tabular     the shared ladder for tables
    computing   run them, grade them, write leaderboard.csv

`python -m mle_ideator.benchmarks.references TASK [--only NAME…] [--write]` computes them.
"""

from mle_ideator.benchmarks.references.values import Given, Reference, Rung

__all__ = ["Given", "Reference", "Rung"]
