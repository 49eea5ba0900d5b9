"""How well a proxy predicts on tasks that it has not seen, and what skipping by it would cost."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mle_ideator.types import Value

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

FALSE_SKIPS = (0.01, 0.02, 0.05)
_BINS = 10


class Skipping(Value, frozen=True, kw_only=True):
    """What is skipped so that of all ideas that improve at most a given share is lost."""

    false_skip: float
    """That share."""
    threshold: float
    """What is predicted to improve with less than this is skipped."""
    saved: float
    """Share of executions."""
    saved_seconds: float | None
    """Share of their seconds; `None` where these are not known."""
    missed: float
    """Share of the skipped ideas that would have improved."""


class Quality(Value, frozen=True, kw_only=True):
    """All of it out of fold: each task was predicted by a proxy that had seen none of it."""

    form: str
    """What was fitted: the one of `model.FORMS` that told most on tasks that it had not seen."""
    examples: int
    tasks: int
    improved: float
    """Share of the examples that improved."""
    auc: float
    """Chance that of two examples, one that improved and one that did not, the first is predicted
    to be likelier."""
    auc_within_tasks: float | None
    """Likewise for two of the same task: the mean over tasks that have both."""
    calibration_error: float
    """Mean distance between what is predicted and what came, over ten bins of as many examples."""
    skipping: tuple[Skipping, ...]


def quality_of(
    form: str, predicted: Floats, improved: Flags, tasks: NDArray[np.str_], seconds: Floats
) -> Quality:
    """Of predictions that were made out of fold; both kinds of example have to be there."""
    return Quality(
        form=form,
        examples=len(improved),
        tasks=len(set(tasks.tolist())),
        improved=float(improved.mean()),
        auc=auc(predicted, improved),
        auc_within_tasks=_auc_within(predicted, improved, tasks),
        calibration_error=calibration_error(predicted, improved),
        skipping=tuple(_skipping(predicted, improved, seconds, rate) for rate in FALSE_SKIPS),
    )


def threshold_at(predicted: Floats, improved: Flags, false_skip: float) -> float:
    """The highest one below which at most that share of all improving examples lies."""
    best = np.sort(predicted[improved])
    allowed = int(np.floor(false_skip * len(best) + 1e-9))
    return float(best[allowed]) if allowed < len(best) else float(np.inf)


def auc(predicted: Floats, improved: Flags) -> float:
    """Area under the ROC curve; ties count half."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(improved, predicted))


def log_loss(predicted: Floats, improved: Flags) -> float:
    """Mean surprise of an example, in nats."""
    chance = np.clip(np.where(improved, predicted, 1 - predicted), 1e-6, 1.0)
    return float(-np.log(chance).mean())


def calibration_error(predicted: Floats, improved: Flags) -> float:
    order = np.argsort(predicted, kind="stable")
    bins = np.array_split(order, min(_BINS, len(order)))
    gaps = [abs(predicted[part].mean() - improved[part].mean()) * len(part) for part in bins]
    return float(sum(gaps) / len(order))


def _auc_within(predicted: Floats, improved: Flags, tasks: NDArray[np.str_]) -> float | None:
    own = [tasks == task for task in sorted(set(tasks.tolist()))]
    both = [auc(predicted[of], improved[of]) for of in own if len(set(improved[of].tolist())) == 2]
    return float(np.mean(both)) if both else None


def _skipping(predicted: Floats, improved: Flags, seconds: Floats, rate: float) -> Skipping:
    threshold = threshold_at(predicted, improved, rate)
    skipped = predicted < threshold
    return Skipping(
        false_skip=rate,
        threshold=threshold,
        saved=float(skipped.mean()),
        saved_seconds=float(seconds[skipped].sum() / seconds.sum()) if seconds.sum() else None,
        missed=float(improved[skipped].mean()) if skipped.any() else 0.0,
    )
