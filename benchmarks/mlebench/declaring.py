"""A competition's metric and its direction: declared, and the leaderboard must not disagree.

mle-bench itself infers the direction from the first and the last row of the leaderboard. Here it
is, in this order, what the person's `mle-ideator.yaml` says; what the metric's name means, if it is
one of ours; what the order of the whole leaderboard tells.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import yaml

from mle_ideator.benchmarks.grading.metrics import MetricSpec, metric_named
from mle_ideator.benchmarks.leaderboards import Leaderboard, Rule, direction_of, read_scores
from mle_ideator.benchmarks.mlebench.competitions import LEADERBOARD, OWN, Competition
from mle_ideator.errors import TaskError, UsageError
from mle_ideator.types import Metric

_NAMES = {
    "auc-roc": "auc",
    "column-wise roc auc": "auc",
    "mean-column-wise-roc-auc": "auc",
    "mean-column-wise-rmsle": "rmsle",
    "multi-class-log-loss": "log_loss",
    "pearson-correlation-coefficient": "pearson",
}
"""Names of mle-bench's for metrics of ours."""


def known_metric(competition: Competition) -> MetricSpec | None:
    """The metric, if it is one of ours, and needs no more than truth and predictions."""
    name = _name(competition)
    try:
        spec = metric_named(_NAMES.get(name.lower(), name))
    except UsageError:
        return None
    return None if spec.beside else spec  # those with groups have another form of submission


def metric_of(competition: Competition) -> Metric:
    """The metric with its direction. Raises `TaskError` if that can not be told."""
    spec, own = known_metric(competition), competition.own.higher_is_better
    name = spec.name if spec else _name(competition)
    declared = own if own is not None else spec.higher_is_better if spec else None
    told = direction_of(_scores(competition) or ())
    where = competition.folder / OWN
    if declared is None and told is None:
        raise TaskError(
            f"{competition.id}: whether a higher {name} is better can not be told; write "
            f"`higher_is_better: true` or `false` into {where}"
        )
    if own is None and declared is not None and told is not None and declared is not told:
        raise TaskError(
            f"{competition.id}: {name} is better {_word(declared)}, but its leaderboard is ordered "
            f"as if {_word(told)} were better; write `metric` and `higher_is_better` into {where}"
        )
    return Metric(name, bool(told if declared is None else declared))


def board_of(competition: Competition, rule: Rule) -> Leaderboard | None:
    """The competition's leaderboard, or `None` where the registry has none."""
    scores = _scores(competition)
    if scores is None:
        return None
    higher = metric_of(competition).higher_is_better
    in_order = tuple(sorted(scores, reverse=higher))
    return Leaderboard(scores=in_order, higher_is_better=higher, people=True, rule=rule)


def _name(competition: Competition) -> str:
    corrected = _corrections().get(competition.id, {}).get("metric")
    return competition.own.metric or corrected or competition.config.grader.name


def _word(higher: bool) -> str:
    return "higher" if higher else "lower"


def _scores(competition: Competition) -> tuple[float, ...] | None:
    file = competition.entry / LEADERBOARD
    if not file.exists():
        return None
    try:
        return read_scores(file)
    except (OSError, ValueError) as error:
        raise TaskError(f"the leaderboard {file} {error}") from error


@cache
def _corrections() -> dict[str, dict[str, str]]:
    file = Path(__file__).with_name("corrections.yaml")
    found: dict[str, dict[str, str]] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return found
