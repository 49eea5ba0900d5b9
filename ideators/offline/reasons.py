"""Why an operation should help, with this state's numbers: one clause each, for the rationale."""

from __future__ import annotations

from collections.abc import Callable

from mle_ideator.ideators.offline.facts import Reading


def says(text: str) -> Callable[[Reading], str]:
    return lambda _: text


def side_tables(r: Reading) -> str:
    tables = " and ".join(r.side_tables)
    return f"what {tables} tell of each row is not in train.csv yet"


def skew(r: Reading) -> str:
    if r.log_metric:
        return f"the metric {r.task.metric.name} compares logarithms, and training should as well"
    return f"the target's skewness is {r.target_skew:.1f}, so a few large values rule the fit"


def near_in_time(r: Reading) -> str:
    if r.between:
        where = f"test rows lie between the training rows in `{r.time}`"
        return f"{where}, and their neighbours in time predict them best"
    return f"test rows come after the training rows in `{r.time}`, and the past predicts them best"


def level_counts(r: Reading) -> str:
    top = max(r.high_cardinality or r.categories, key=lambda c: c.levels)
    many = "too many to learn one by one" if r.high_cardinality else "which say nothing as numbers"
    return f"`{top.name}` has {top.levels} levels, {many}"


def gaps(r: Reading) -> str:
    top = max(r.missing, key=lambda c: c.missing)
    return (
        f"`{top.name}` lacks {top.missing:.0%} of its values, and that they lack may tell something"
    )


def heavy_tails(r: Reading) -> str:
    top = max(r.skewed, key=lambda c: abs(c.skew or 0.0))
    return f"`{top.name}` has a skewness of {top.skew:.1f}, so extremes pull the fit"


def metric_trains(r: Reading) -> str:
    return f"the metric is {r.task.metric.name}, and squared error is not the same thing"


def metric_weighs(r: Reading) -> str:
    return f"the metric {r.task.metric.name} gives rare classes as much weight as common ones"


def metric_cuts(r: Reading) -> str:
    return f"the metric {r.task.metric.name} judges decisions, and the default cut is seldom best"


def honest(r: Reading) -> str:
    where = r.group or r.time
    seen = f"the validation score is {r.gap:.0%} rosier than the graded one" if r.gap > 0.02 else ""
    return seen or f"test differs from train in `{where}`, and validation should differ likewise"


def curved(r: Reading) -> str:
    what = "images of a class" if r.image else "rows with a like target"
    return f"{what} lie close together, with curved borders that distance describes well"


def size(text: str) -> Callable[[Reading], str]:
    return lambda r: text.format(rows=r.rows)
