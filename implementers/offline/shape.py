"""What kind of problem a task is, and how large, as far as solutions have to know."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from mle_ideator.recipes import Profile
from mle_ideator.types import Task

Form = Literal["value", "values", "binary", "classes", "marks"]


@dataclass(frozen=True)
class Shape:
    """A task and its data in the terms of generated solutions."""

    task: Task
    profile: Profile

    @cached_property
    def form(self) -> Form:
        """One value, several values, two classes, more classes, or many labels."""
        several = len(self.profile.targets) > 1
        if self.task.prediction == "value":
            return "values" if several else "value"
        if several:
            return "marks"
        return "binary" if len(self.classes) <= 2 else "classes"

    @property
    def is_value(self) -> bool:
        return self.form in ("value", "values")

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """Class names in the order of the probabilities."""
        if set(self.task.classes) == set(self.task.targets):
            return self.task.targets
        return self.task.classes

    @cached_property
    def targets(self) -> tuple[str, ...]:
        """Target columns of train.csv."""
        return tuple(column.name for column in self.profile.targets)

    @cached_property
    def outputs(self) -> int:
        """Columns of a model's predictions."""
        if self.form in ("binary", "classes"):
            return max(len(self.classes), 2)
        return len(self.targets)

    def columns(self, kind: str) -> tuple[str, ...]:
        return tuple(column.name for column in self.profile.columns if column.kind == kind)

    @cached_property
    def numbers(self) -> int:
        """How many numeric columns there are, pixels included."""
        height, width = self.profile.image or (0, 0)
        return len(self.columns("number")) + self.profile.unlisted + height * width

    @property
    def has_past(self) -> bool:
        """Are there known values of the target at other times than the test rows'?"""
        return self.profile.time is not None and self.form == "value"

    @property
    def forecasts(self) -> bool:
        """Do the test rows come after the training rows?"""
        return self.profile.time is not None and not self.profile.gaps

    @property
    def metric(self) -> str:
        """The metric that solutions compute of themselves: the task's, if it is a known one."""
        name = self.task.metric.name
        return name if name in METRICS[self.form] else _fallback(self)

    @property
    def metric_is_known(self) -> bool:
        return self.metric == self.task.metric.name


def _fallback(shape: Shape) -> str:
    """A metric of the same direction. Those of single values that are better high and not known
    here (concordance, ndcg) are about their order."""
    if not shape.task.metric.higher_is_better:
        return METRICS[shape.form][-1]
    return "spearman" if shape.form == "value" else METRICS[shape.form][0]


_VALUES = ("r2", "pearson", "spearman", "kendall", "mape", "smape", "wape", "rmsle",
           "poisson_deviance", "gamma_deviance", "pinball_90", "median_ae", "mse", "mae",
           "rmse")  # fmt: skip
_LABELS = ("accuracy", "balanced_accuracy", "macro_f1", "micro_f1", "f1", "mcc", "kappa", "qwk",
           "hamming_loss")  # fmt: skip
_PROBABILITIES = ("auc", "gini", "average_precision", "lrap", "brier", "log_loss")

METRICS: dict[Form, tuple[str, ...]] = {
    "value": _VALUES,
    "values": _VALUES,
    "binary": _LABELS + _PROBABILITIES,
    "classes": _LABELS + _PROBABILITIES,
    "marks": _LABELS + _PROBABILITIES,
}
"""Metrics that solutions can compute. The first is better high, the last better low."""
