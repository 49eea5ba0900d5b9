"""What agents read of a person's data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mle_ideator.benchmarks.own_data.reading import blank
from mle_ideator.benchmarks.own_data.target import Target, numbers_in

if TYPE_CHECKING:
    import pandas as pd

MOST_COLUMNS = 200
WORDS_OF_A_TEXT = 4


def task_type(features: pd.DataFrame, target: Target) -> str:
    """`tabular-…` or, if a column holds sentences, `text-…`."""
    sentences = any(_is_text(features[name]) for name in features.columns)
    what = "classification" if target.classes else "regression"
    return f"{'text' if sentences else 'tabular'}-{what}"


def _is_text(cells: pd.Series[str]) -> bool:
    filled = cells[~blank(cells)].head(2000)
    if not len(filled):
        return False
    many_words = filled.str.count(r"\s+").mean() + 1 >= WORDS_OF_A_TEXT
    return bool(many_words and filled.nunique() > len(filled) / 2)


def describe(train: pd.DataFrame, target: Target, id_column: str, remarks: list[str]) -> str:
    """A task's description, from what the data show."""
    names = [name for name in train.columns if name not in (target.name, id_column)]
    columns = [f"- `{name}`: {_column(train[name])}" for name in names[:MOST_COLUMNS]]
    if len(names) > MOST_COLUMNS:
        columns.append(f"- and {len(names) - MOST_COLUMNS} columns more")
    notes = ["", "## Notes", "", *(f"- {remark}" for remark in remarks)] if remarks else []
    lines = [
        f"# Predict {target.name}",
        "",
        f"Predict the column `{target.name}` of `test.csv` from the other columns.",
        "",
        "## Files",
        "",
        "- `train.csv`: rows with their target",
        "- `test.csv`: rows without it",
        "- `sample_submission.csv`: the form of a submission, with a constant",
        "",
        "## Columns",
        "",
        f"- `{id_column}`: names the row",
        *columns,
        f"- `{target.name}`: the target (only in `train.csv`); {_target(target)}",
        "",
        "## Submission",
        "",
        f"For each `{id_column}` of `test.csv` {_wanted(target)}. {_metric(target)}",
        *notes,
    ]
    return "\n".join(lines) + "\n"


def _column(cells: pd.Series[str]) -> str:
    missing = blank(cells)
    filled = cells[~missing]
    if not len(filled):
        return "empty"
    numbers = numbers_in(filled)
    if numbers is not None:
        kind = f"numbers from {numbers.min():g} to {numbers.max():g}"
    else:
        kind = f"text, {filled.nunique():,} different, such as {str(filled.iloc[0])[:40]!r}"
    return f"{kind}; {missing.mean():.0%} missing" if missing.any() else kind


def _target(target: Target) -> str:
    if not target.classes:
        return "numbers"
    return "classes " + ", ".join(f"`{name}`" for name in target.classes)


def _wanted(target: Target) -> str:
    if target.spec.prediction != "probability":
        return f"the `{target.name}`"
    if len(target.columns) > 1:
        return "the probability of each class, in a column of the class's name; they sum to 1"
    return f"in `{target.name}` the probability of `{target.classes[-1]}`"


def _metric(target: Target) -> str:
    direction = "more is better" if target.spec.higher_is_better else "less is better"
    return f"Scored by `{target.spec.name}`: {target.spec.doc} Here {direction}."
