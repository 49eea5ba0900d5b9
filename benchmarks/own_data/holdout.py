"""Which of a person's training rows are kept from the agents."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pandas as pd

    Mask = npt.NDArray[np.bool_]

ROWS_A_STRATUM = 50
MOST_STRATA = 10


def strata_of(target: pd.Series[str], numbers: pd.Series[float] | None) -> pd.Series[str]:
    """The class, or for numbers the tenth of the range of ranks, by which rows are drawn evenly."""
    import pandas as pd

    if numbers is None:
        return target
    count = max(1, min(MOST_STRATA, len(numbers) // ROWS_A_STRATUM))
    ranks = numbers.rank(method="first")
    return pd.cut(ranks, count, labels=False).astype(str)


def pooled(strata: pd.Series[str]) -> pd.Series[str]:
    """With all strata of a single row as one, so that they can be halved."""
    alone = strata.map(strata.value_counts()) == 1
    return strata.mask(alone, "")


def repeats_of(features: pd.DataFrame) -> pd.Series[int]:
    """A number for each row, the same for rows with equal features."""
    import pandas as pd

    return pd.util.hash_pandas_object(features, index=False).set_axis(features.index)


def draw(
    strata: pd.Series[str], repeats: pd.Series[int], share: float, rng: np.random.Generator
) -> Mask:
    """True for about `share` of the rows of each stratum. Equal rows are drawn together.

    A stratum of four rows or more gives at least two, and each keeps at least one.
    """
    import pandas as pd

    groups = pd.DataFrame({"stratum": strata, "repeat": repeats}).groupby("repeat", sort=True)
    table = groups.agg(stratum=("stratum", "first"), size=("stratum", "size"))
    table = table.iloc[rng.permutation(len(table))]
    drawn: list[int] = []
    for _, members in table.groupby("stratum", sort=True):
        rows = int(members["size"].sum())
        wanted = max(round(share * rows), 2 if rows >= 4 else 0)
        before = members["size"].cumsum() - members["size"]
        kept = members.index[(before < wanted).to_numpy()]
        drawn += kept[: len(members) - 1].tolist()
    return repeats.isin(drawn).to_numpy()
