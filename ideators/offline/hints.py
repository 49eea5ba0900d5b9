"""What each operation is worth and where it belongs: one table.

A prior is the chance that the operation brings a gain worth having where it fits, as measured on
tasks of many kinds. `fits` says how well it fits this help state: 0 is *inapplicable*, 1 is *as
usual*, more is *made for this*. `reason` says why it should help here, with this data's numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from mle_ideator.ideators.offline import fits, reasons
from mle_ideator.ideators.offline.facts import Reading
from mle_ideator.recipes import Column

Cost = Literal["cheap", "moderate", "heavy"]


class Hint(msgspec.Struct, frozen=True):
    """One line of the table."""

    operation: str
    prior: float
    fits: Callable[[Reading], float]
    reason: Callable[[Reading], str]
    cost: Cost = "cheap"
    partner: str | None = None
    """An operation that belongs with it, where that is applicable too."""
    columns: Callable[[Reading], Sequence[Column]] | None = None
    """The columns it is about."""


HINTS: tuple[Hint, ...] = (
    Hint("join_tables", 0.9, lambda r: fits.when(r.side_tables), reasons.side_tables),
    Hint("lag_features", 0.95, fits.lags, reasons.near_in_time, partner="rolling_features"),
    Hint("rolling_features", 0.6, fits.rolling, reasons.near_in_time, partner="lag_features"),
    Hint(
        "date_parts",
        0.75,
        fits.date_parts,
        reasons.says("seasons and weekdays are hidden in a date until it is split"),
        columns=lambda r: r.dates,
    ),
    Hint("target_log", 0.55, fits.target_log, reasons.skew),
    Hint(
        "text_characters",
        0.85,
        lambda r: fits.when(r.text),
        reasons.says("parts of words carry meaning across spellings and forms"),
        cost="moderate",
        partner="model_linear",
        columns=lambda r: r.texts,
    ),
    Hint(
        "text_words",
        0.75,
        lambda r: fits.when(r.text),
        reasons.says("the words of a text say most of what it is about"),
        partner="model_linear",
        columns=lambda r: r.texts,
    ),
    Hint(
        "text_statistics",
        0.3,
        fits.text_statistics,
        reasons.says("length and kinds of letters are not in a bag of words"),
        columns=lambda r: r.texts,
    ),
    Hint(
        "text_svd",
        0.35,
        fits.text_svd,
        reasons.says("dense components suit this model better than thousands of sparse columns"),
        cost="moderate",
    ),
    Hint(
        "image_gradients",
        0.75,
        lambda r: fits.when(r.image),
        reasons.says("edges tell shapes apart better than the brightness of single pixels"),
        cost="moderate",
    ),
    Hint(
        "image_shifts",
        0.7,
        lambda r: fits.when(r.image),
        reasons.says("a picture moved by a pixel keeps its class, and more examples teach that"),
        cost="heavy",
    ),
    Hint(
        "pca",
        0.2,
        fits.pca,
        reasons.says("many columns say the same, and fewer directions carry less noise"),
    ),
    Hint(
        "target_encoding",
        0.5,
        fits.target_encoding,
        reasons.level_counts,
        columns=lambda r: r.high_cardinality or r.categories,
    ),
    Hint(
        "frequency_encoding",
        0.35,
        fits.frequency_encoding,
        reasons.level_counts,
        columns=lambda r: r.high_cardinality or r.categories,
    ),
    Hint(
        "group_aggregates",
        0.4,
        fits.aggregates,
        reasons.says("a value means more when compared with its own group"),
        columns=lambda r: r.categories,
    ),
    Hint(
        "rare_levels", 0.25, fits.rare, reasons.level_counts, columns=lambda r: r.high_cardinality
    ),
    Hint(
        "interactions",
        0.65,
        fits.products,
        reasons.says(
            "effects that depend on each other need products that a single split can not see"
        ),
        columns=lambda r: r.numbers,
    ),
    Hint(
        "ratios",
        0.5,
        fits.ratios,
        reasons.says("what matters is often one amount per another, which trees only approximate"),
        columns=lambda r: r.numbers,
    ),
    Hint(
        "clip_outliers", 0.25, fits.clip_outliers, reasons.heavy_tails, columns=lambda r: r.skewed
    ),
    Hint("impute_missing", 0.4, fits.impute, reasons.gaps, columns=lambda r: r.missing),
    Hint("class_weights", 0.5, fits.class_weights, reasons.metric_weighs),
    Hint("loss_of_metric", 0.55, fits.loss, reasons.metric_trains),
    Hint("validate_by_group", 0.3, fits.by_group, reasons.honest),
    Hint("validate_by_time", 0.3, fits.by_time, reasons.honest),
    Hint(
        "model_boosting",
        0.8,
        fits.boosting,
        reasons.size("boosted trees find steps and interactions in {rows} rows without help"),
        cost="moderate",
    ),
    Hint(
        "model_forest",
        0.45,
        fits.forest,
        reasons.size("averaged deep trees are robust on {rows} rows"),
        cost="moderate",
    ),
    Hint(
        "model_linear",
        0.35,
        fits.linear,
        reasons.says(
            "a regularised linear model uses many weak columns at once and hardly overfits"
        ),
    ),
    Hint(
        "model_neighbours", 0.3, fits.neighbours, reasons.says("similar rows have similar targets")
    ),
    Hint("model_kernel", 0.35, fits.kernel, reasons.curved, cost="heavy"),
    Hint(
        "model_network",
        0.4,
        fits.network,
        reasons.size("a small network learns smooth curved relations from {rows} rows"),
        cost="heavy",
    ),
    Hint(
        "more_regularisation",
        0.25,
        fits.regularise,
        reasons.size("with {rows} rows part of what the model fits is noise"),
    ),
    Hint(
        "more_capacity",
        0.35,
        fits.capacity,
        reasons.size("{rows} rows may hold more structure than the model can yet express"),
        cost="moderate",
    ),
    Hint(
        "tune", 0.45, lambda r: 1.0, reasons.says("the settings so far are defaults"), cost="heavy"
    ),
    Hint(
        "bag_seeds",
        0.35,
        fits.bag_seeds,
        reasons.says("averaging removes the part of the error that is luck"),
        cost="heavy",
    ),
    Hint(
        "blend",
        0.5,
        fits.combination("stack"),
        reasons.says("models of different families err in different places"),
        cost="heavy",
    ),
    Hint(
        "stack",
        0.4,
        fits.combination("blend"),
        reasons.says("a second model can learn where each first model is to be trusted"),
        cost="heavy",
    ),
    Hint("tune_threshold", 0.6, fits.thresholds, reasons.metric_cuts),
    Hint(
        "calibrate",
        0.35,
        fits.calibrate,
        reasons.says("the metric punishes over-confident probabilities"),
        cost="moderate",
    ),
    Hint(
        "clip_predictions",
        0.15,
        fits.clip_predictions,
        reasons.says("no prediction need lie outside of what the target can be"),
    ),
)
