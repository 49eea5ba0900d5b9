"""Does anything that agents see tell the answers? Checks of a built task's files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mle_ideator.benchmarks.building import ANSWERS, PART, PRIVATE, PUBLIC, SAMPLE, TEST, TRAIN
from mle_ideator.benchmarks.declared.findings import Finding, found
from mle_ideator.benchmarks.declared.spec import Spec
from mle_ideator.benchmarks.grading.wording import count, some

Array = npt.NDArray[Any]

MOST_ROWS = 4_000
"""So many rows, drawn at random, are enough to see a leak."""
TELLS_ALL = 0.995
"""Share of the target's variance that one column must not explain."""
TELLS_MUCH = 0.985
CHANCE = 4.5
"""Standard errors that correlations by chance do not reach."""


@dataclass(frozen=True, eq=False)
class Files:
    """A built task as text: what is shown, and the answers."""

    spec: Spec
    train: pd.DataFrame
    test: pd.DataFrame
    sample: pd.DataFrame
    answers: pd.DataFrame
    tables: dict[str, pd.DataFrame]
    """Side tables by file name."""

    @cached_property
    def features(self) -> list[str]:
        return [name for name in self.test.columns if name != self.spec.id_column]

    @cached_property
    def hidden(self) -> list[str]:
        return [*self.spec.targets, *([self.spec.event] if self.spec.event else [])]

    def truth(self, rows: pd.DataFrame) -> Array:
        """The targets of training or answer rows as numbers, standardised: (rows, columns).

        Numbers by their rank, so that no outlier stands for all; classes one column each.
        """
        columns = []
        for name in self.spec.targets:
            numbers = pd.to_numeric(rows[name], errors="coerce")
            if self.spec.prediction == "value" and numbers.notna().all():
                columns.append(numbers.rank().to_numpy(dtype=float)[:, None])
            else:
                columns.append(pd.get_dummies(rows[name]).to_numpy(dtype=float))
        made: Array = np.hstack(columns)
        deviation = made.std(axis=0)
        varying = deviation > 0
        return np.asarray((made - made.mean(axis=0))[:, varying] / deviation[varying])


def read_files(folder: Path, spec: Spec) -> Files:
    """The files of a built task."""
    public = folder / PUBLIC
    shown = {path.name: _table(path) for path in sorted(public.glob("*.csv"))}
    train, test, sample = (shown.pop(name) for name in (TRAIN, TEST, SAMPLE))
    return Files(spec, train, test, sample, _table(folder / PRIVATE / ANSWERS), shown)


def _table(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def leaks_in(files: Files) -> Iterator[Finding]:
    """All checks, one finding each."""
    yield found("overlap", _overlap(files), "no test row has the features of a training row")
    yield found("order", _order(files), "ids and order of the rows tell nothing of the target")
    yield _single_columns(files)
    yield found("hidden answers", _shown(files), "test.csv, sample and side tables hold no answers")


def _overlap(files: Files) -> str:
    names = files.features
    train, test = (
        pd.util.hash_pandas_object(frame[names], index=False) for frame in (files.train, files.test)
    )
    same = test.isin(set(train))
    ids = set(files.train[files.spec.id_column]) & set(files.test[files.spec.id_column])
    if ids:
        return f"train.csv and test.csv share {count(len(ids), 'id')}, such as {some(ids, 1, 1)}"
    if not same.any():
        return ""
    first = files.test.loc[same, files.spec.id_column].iloc[0]
    return (
        f"{count(int(same.sum()), 'test row')} of {len(test):,} (such as id {first}) "
        f"{'has' if same.sum() == 1 else 'have'} the features of a training row: drop duplicates, "
        "or keep equal rows in one file"
    )


def _order(files: Files) -> str:
    """What ids and positions tell; the empty text if nothing."""
    for name, rows in ((TRAIN, files.train), ("the answers", files.answers)):
        truth = files.truth(rows)
        limit = CHANCE / len(rows) ** 0.5
        place = _ranks(np.arange(len(rows)))
        if (worst := np.abs(_correlations(place, truth)).max()) > limit:
            return f"rows of {name} are sorted by the target (correlation {worst:.2f}): shuffle"
        if (worst := np.abs((truth[1:] * truth[:-1]).mean(axis=0)).max()) > limit:
            return f"rows of {name} that follow each other are alike ({worst:.2f}): shuffle them"
        ids = _numbers(rows[files.spec.id_column])
        if (worst := np.abs(_correlations(_ranks(ids), truth)).max()) > limit:
            return f"the ids in {name} tell the target (correlation {worst:.2f}): number anew"
        told = explained(np.column_stack([ids, *(ids % n for n in (2, 3, 5, 7, 10))]), truth)
        if told > max(0.02, 30 / len(rows)):
            return f"the ids in {name} tell {told:.0%} of the target's variance: number anew"
    return _order_of_tables(files)


def _order_of_tables(files: Files) -> str:
    """A side table with one row for each row of train.csv may lie in the target's order.

    One that lies in the order of its key (days, say) tells no more than the key.
    """
    truth = files.truth(files.train)
    for name, table in files.tables.items():
        for key in _keys(table, files):
            if (np.diff(_numbers(table[key])) > 0).all():
                continue
            places = pd.Series(np.arange(len(table)), index=table[key])
            place = files.train[key].map(places)
            known = place.notna().to_numpy()
            if known.sum() < 50:
                continue
            worst = np.abs(_correlations(_ranks(place[known].to_numpy()), truth[known])).max()
            if worst > CHANCE / known.sum() ** 0.5:
                return f"rows of {name} are sorted by the target (correlation {worst:.2f}): shuffle"
    return ""


def _keys(table: pd.DataFrame, files: Files) -> list[str]:
    """Columns that name the rows of a table, and rows of train.csv or test.csv."""
    shared = [name for name in table if name in files.features or name == files.spec.id_column]
    few = [name for name in shared if table[name].is_unique]
    return [name for name in few if pd.concat([files.train, files.test])[name].is_unique]


def _single_columns(files: Files) -> Finding:
    """No column alone may explain the target, in the training or in the test rows."""
    highest, which = 0.0, ""
    for rows, answers in ((files.train, files.train), (files.test, files.answers)):
        truth, chosen = files.truth(answers), _sample(len(rows))
        for name in files.features:
            told = explained(_numbers(rows[name])[chosen, None], truth[chosen])
            if told > highest:
                highest, which = told, name
    if highest > TELLS_MUCH:
        wrong = f"column {which!r} alone tells {highest:.1%} of the target's variance: is it known "
        return Finding(
            "single columns",
            "failed" if highest > TELLS_ALL else "warning",
            f"{wrong}before the target is?",
        )
    most = f"; the most is {highest:.0%}, by {which!r}" if which else ""
    return Finding("single columns", "ok", f"no column alone gives the target{most}")


def _shown(files: Files) -> str:
    spec = files.spec
    if names := [name for name in files.hidden if name in files.test]:
        return f"test.csv has the column {names[0]!r}, which is hidden"
    varying = files.sample.drop(columns=spec.id_column).nunique()
    if (varying > 1).any():
        return (
            f"{SAMPLE} has predictions that vary by row ({varying.index[varying > 1][0]!r}): they "
            "could be answers; write a constant"
        )
    for name, table in files.tables.items():
        if names := [one for one in files.hidden if one in table]:
            return f"{name} has the column {names[0]!r}, which is hidden"
        for key in _keys(table, files):
            if wrong := _told_by(table.set_index(key), files.test[key], files):
                return f"{name} holds answers: {wrong}"
    return ""


def _told_by(table: pd.DataFrame, keys: pd.Series[str], files: Files) -> str:
    """Does a column of the joined table give the answers?"""
    known = keys.isin(table.index).to_numpy()
    if known.sum() < 20:
        return ""
    joined = table.reindex(keys[known])
    truth = files.truth(files.answers[known])
    for name in joined:
        told = explained(_numbers(joined[name])[:, None], truth)
        if told > TELLS_MUCH:
            return f"its column {name!r} tells {told:.1%} of the target's variance in test rows"
    return ""


def both_parts_scored(files: Files) -> str:
    """The empty text if both have a fair share of the rows."""
    shares = files.answers[PART].value_counts(normalize=True)
    for part in (PUBLIC, PRIVATE):
        if shares.get(part, 0.0) < 0.1:
            return f"the {part} part has {shares.get(part, 0.0):.0%} of the test rows"
    return ""


def explained(columns: Array, truth: Array) -> float:
    """Share of the variance of `truth` that a small tree on `columns` finds in rows unseen.

    The tree learns from two thirds of the rows: about 0 if the columns tell nothing.
    """
    from sklearn.tree import DecisionTreeRegressor

    held = np.random.default_rng(0).random(len(truth)) < 1 / 3
    if held.all() or not held.any() or not truth.shape[1]:
        return 0.0
    least = max(2, len(truth) // 500)
    tree = DecisionTreeRegressor(min_samples_leaf=least, max_leaf_nodes=256, random_state=0)
    predicted = tree.fit(columns[~held], truth[~held]).predict(columns[held])
    missed = (truth[held] - predicted.reshape(truth[held].shape)) ** 2
    spread = (truth[held] - truth[~held].mean(axis=0)) ** 2
    return float(1 - missed.sum() / spread.sum()) if spread.sum() else 0.0


def _numbers(cells: pd.Series[str]) -> Array:
    """Cells as numbers: as they are, or texts by their place in the alphabet."""
    numbers = pd.to_numeric(cells, errors="coerce")
    if numbers.notna().mean() > 0.5:
        return numbers.to_numpy(dtype=float)
    return pd.factorize(cells, sort=True)[0].astype(float)


def _ranks(values: Array) -> Array:
    ranks = pd.Series(values).rank().to_numpy(dtype=float)
    deviation = np.nanstd(ranks) or 1.0
    return (ranks - np.nanmean(ranks)) / deviation


def _correlations(values: Array, truth: Array) -> Array:
    """Of standardised values with each column of `truth`; blanks count as the mean."""
    return np.asarray((np.nan_to_num(values)[:, None] * truth).mean(axis=0))


def _sample(rows: int) -> Array:
    order = np.random.default_rng(0).permutation(rows)
    return np.sort(order[:MOST_ROWS])
