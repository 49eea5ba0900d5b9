"""All that is read from an evaluation."""

from __future__ import annotations

from mle_ideator.rl.evaluation.contenders import rows_of
from mle_ideator.rl.evaluation.pairs import pairs_of, shifts_of
from mle_ideator.rl.evaluation.values import Evaluation, Findings


def findings_of(evaluation: Evaluation) -> Findings:
    """Figures of each contender, of each pair, and the shifts of idea categories."""
    return Findings(
        contenders=evaluation.contenders,
        tasks=tuple(sorted({card.task for card in evaluation.states})),
        states=len(evaluation.states),
        ideas=evaluation.ideas,
        seed=evaluation.seed,
        rows=tuple(rows_of(evaluation)),
        pairs=tuple(pairs_of(evaluation)),
        shifts=tuple(shifts_of(evaluation)),
    )
