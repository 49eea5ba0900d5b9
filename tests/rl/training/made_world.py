"""A made world, where an idea improves or not by the operation that it names."""

from __future__ import annotations

from random import Random

from mle_ideator.operations import OPERATIONS
from mle_ideator.rl.training.proxy import Example
from tests.rl.made_rollouts import help_state, idea

GOOD = ("model_boosting", "ratios", "target_log", "interactions")
POOR = ("pca", "clip_outliers", "bag_seeds", "calibrate")


def world(number: int, tasks: int = 4, seed: int = 0) -> list[Example]:
    """Good operations improve in 7 of 10 cases, poor ones in 1 of 50."""
    random, examples = Random(seed), []
    for i in range(number):
        name = random.choice(GOOD + POOR)
        improved = random.random() < (0.7 if name in GOOD else 0.02)
        state = help_state(f"task {i % tasks}")
        examples.append(Example(state, idea(OPERATIONS[name].action), improved, seconds=10.0))
    return examples
