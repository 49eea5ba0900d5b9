"""What a step was like, in numbers that mean the same for every trainer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import fmean

from mle_ideator.operations import mentioned
from mle_ideator.rl.buffer.views import BufferMetrics
from mle_ideator.rl.training.advantages import informative
from mle_ideator.rl.training.values import Group
from mle_ideator.rl.values import RolloutResult


def of_groups(groups: Sequence[Group]) -> dict[str, float]:
    """Means over all answers but the masked ones; of the groups' ideas, how different they are."""
    results = [result for group in groups for result in group.results]
    known = [result for result in results if result.reward is not None]
    answers = [answer for group in groups for answer in group.answers]
    best = [max(rewards) for group in groups if (rewards := _known(group.rewards))]
    return {
        "reward": _mean(result.reward or 0.0 for result in known),
        "best_of_group": _mean(best),
        "improved_rate": _share(known, lambda one: one.outcome == "improved"),
        "invalid_rate": _share(known, lambda one: one.outcome == "invalid_format"),
        "masked_rate": 1 - len(known) / len(results) if results else 0.0,
        "noop_rate": _share(known, _without_effect),
        "zero_variance": _mean(not informative(group.rewards) for group in groups),
        "idea_tokens": _mean(answer.tokens for answer in answers),
        "cut_rate": _mean(answer.cut for answer in answers),
        "diversity": _mean(_diversity(group) for group in groups),
        "distinct_operations": float(len({name for one in known for name in _operations(one)})),
    }


def of_buffer(metrics: BufferMetrics) -> dict[str, float]:
    return {
        "buffer_states": float(metrics.states),
        "buffer_retired": float(metrics.retired),
        "buffer_potential": metrics.mean_potential or 0.0,
    }


def _without_effect(result: RolloutResult) -> bool:
    """There was no idea, or the score did not move at all: nothing of it was carried out."""
    if result.outcome == "invalid_format":
        return False
    if result.idea is None:
        return True
    before, after = result.before, result.after
    return before is not None and after is not None and before.value == after.value


def _diversity(group: Group) -> float:
    """Different ideas to one help state, as a share of its answers; what an idea asks for counts,
    not its words, where it names an operation."""
    said = {
        (result.idea.reverts_to if result.idea else None, *(_operations(result) or (answer.text,)))
        for answer, result in zip(group.answers, group.results, strict=True)
    }
    return len(said) / len(group.answers) if group.answers else 0.0


def _operations(result: RolloutResult) -> tuple[str, ...]:
    if result.idea is None:
        return ()
    return tuple(sorted(operation.name for operation in mentioned(result.idea.action)))


def _known(rewards: Iterable[float | None]) -> list[float]:
    return [reward for reward in rewards if reward is not None]


def _share(results: Sequence[RolloutResult], holds: Callable[[RolloutResult], bool]) -> float:
    return _mean(holds(result) for result in results)


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return fmean(listed) if listed else 0.0
