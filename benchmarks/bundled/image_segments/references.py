"""Shares of the colours tell the regions apart; boosting of many kinds, blended, does best."""

from collections.abc import Iterator

import pandas as pd

from mle_ideator.benchmarks.references import Given, Reference, models
from mle_ideator.benchmarks.references.encoding import Pair, as_given
from mle_ideator.benchmarks.references.models import Model, blended, boosting
from mle_ideator.benchmarks.references.tabular import rung

COLOURS = ("rawred-mean", "rawblue-mean", "rawgreen-mean")


def references() -> Iterator[Reference]:
    yield from rung("weak", models.weak(), as_given)
    yield from rung("boosting", models.boosted(), as_given)
    yield from rung("features", models.engineered(), with_shares)
    yield from rung("full", _full(), with_shares)


def with_shares(given: Given) -> Pair:
    """With each colour's share of the brightness."""
    train, test = as_given(given)
    return _with_shares(train), _with_shares(test)


def _with_shares(regions: pd.DataFrame) -> pd.DataFrame:
    brightness = 3 * (regions["intensity-mean"] + 1)
    return regions.assign(**{f"share {name}": regions[name] / brightness for name in COLOURS})


def _full() -> list[Model]:
    """Slow boosting of a third of the columns, which chance decides on, again and again."""
    slow = [_slow(seed) for seed in range(8)]
    forest, extra = models.large_forests()["forest 2"], models.large_forests()["extra 2"]
    return [
        *slow[:2],
        blended("4 slow boosting", *slow[:4]),
        blended("8 slow boosting", *slow),
        blended("4 slow boosting and forest", *slow[:4], forest),
        blended("4 other slow boosting and forest", *slow[4:], forest),
        blended("8 slow boosting and forest", *slow, forest),
        blended("4 slow boosting and trees", *slow[:4], forest, extra),
        blended("4 other slow boosting and trees", *slow[4:], forest, extra),
        blended("6 slow boosting and trees", *slow[1:7], forest, extra),
        blended("8 slow boosting and trees", *slow, forest, extra),
    ]


def _slow(seed: int) -> Model:
    make = boosting(
        180, learning_rate=0.06, max_leaf_nodes=12, max_features=0.3, random_state=seed + 1
    )
    return Model(f"slow boosting {seed + 1}", make, suited=True)
