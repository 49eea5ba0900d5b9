"""The vocabulary of modelling operations: what an idea can be about, and how people say it.

One catalogue serves everyone who has to read ideas: the offline implementer (which operations does
this text ask for?), the offline ideator (which are left to try?), and reports (which category of
idea helped?). It knows words only; what an operation does to data is the implementer's business.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Literal

import msgspec

Category = Literal[
    "data preparation",
    "feature engineering",
    "model choice",
    "training",
    "hyper-parameters",
    "ensembling",
    "post-processing",
]


class Operation(msgspec.Struct, frozen=True, dict=True):
    """One composable modelling operation."""

    name: str
    category: Category
    action: str
    """The operation as an instruction, the way an ideator would write it."""
    phrases: str
    """Regular expression of the ways in which people name it, matched without regard to case."""

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(rf"\b(?:{self.phrases})", re.IGNORECASE)


def _catalogue(*operations: Operation) -> dict[str, Operation]:
    return {operation.name: operation for operation in operations}


OPERATIONS: dict[str, Operation] = _catalogue(
    Operation(
        "join_tables",
        "data preparation",
        "Join the side tables to train and test on the keys they share.",
        r"join(?:s|ed|ing)?\b|side tables?"
        r"|merge (?:in )?(?:the )?(?:side|other|additional|extra) (?:tables?|files?)",
    ),
    Operation(
        "impute_missing",
        "data preparation",
        "Fill missing numbers with the median and add an indicator column for each.",
        r"imput|(?:(?:fill|replac)\w* (?:in )?(?:the |all )?)?"
        r"missing[- ](?:values?|indicators?|numbers?)"
        r"|(?:fill|replac)\w* (?:in )?(?:the |all )?nans?\b",
    ),
    Operation(
        "rare_levels",
        "data preparation",
        "Merge the rare levels of each categorical column into one.",
        r"(?:rare|infrequent) (?:\w+ )?(?:levels?|categor|values)",
    ),
    Operation(
        "clip_outliers",
        "data preparation",
        "Clip numeric columns to their 0.5 and 99.5 percentiles.",
        r"(?:(?:remove|drop|clip|cap|trim)\w* (?:the |all )?(?:extreme )?)?outliers?|winsori[sz]"
        r"|(?:clip|cap)(?:ping)? (?:the )?(?:numeric|numbers|features?|columns?|extreme)",
    ),
    Operation(
        "target_log",
        "data preparation",
        "Train on log1p of the target and transform predictions back.",
        r"log1p|logarithms?\b|log[- ]?(?:transform|scale|space|target)|logs? of (?:the )?target"
        r"|target[- ]log",
    ),
    Operation(
        "date_parts",
        "feature engineering",
        "Split dates into year, month, day, weekday, hour and their cyclic forms.",
        r"date (?:parts?|features?)|calendar features?|weekday|day of (?:the )?week|cyclic(?:al)?",
    ),
    Operation(
        "frequency_encoding",
        "feature engineering",
        "Add the frequency of each categorical level as a number.",
        r"(?:frequency|count)[- ]encod|(?:level|category) (?:frequenc|counts?\b)"
        r"|frequenc(?:y|ies) of (?:each|every|the) (?:\w+ ){0,2}levels?|how often each level",
    ),
    Operation(
        "target_encoding",
        "feature engineering",
        "Add out-of-fold target encodings of the categorical columns.",
        r"(?:target|mean|likelihood)[- ]encod",
    ),
    Operation(
        "interactions",
        "feature engineering",
        "Add products of the most important numeric columns.",
        r"interactions?|cross(?:ed)? (?:terms?|features?)|polynomial"
        r"|products? of (?:[\w-]+ ){0,4}(?:columns?|features?|numbers|pairs)",
    ),
    Operation(
        "ratios",
        "feature engineering",
        "Add ratios and differences of the most important numeric columns.",
        r"ratios?\b(?: and differences?)?|differences? (?:of|between) (?:[\w-]+ ){0,4}"
        r"(?:columns?|features?|numbers|pairs)",
    ),
    Operation(
        "group_aggregates",
        "feature engineering",
        "Add the mean, spread and deviation of numeric columns within each categorical level.",
        r"group(?:ed)?[- ]?(?:wise )?(?:aggregat\w+|statistics|features?|means?)"
        r"|aggregat(?:es?|ed|ions?) (?:features?|statistics|by|per|within|over)"
        r"|(?:means?|spreads?|deviations?|statistics)\b[\w ,-]{0,50} within each",
    ),
    Operation(
        "lag_features",
        "feature engineering",
        "Add lags of the target at the seasonal distances that the forecast horizon allows.",
        r"lag(?:s|ged)?\b|autoregress|seasonal (?:naive|lags?)|last (?:week|year|period)'s"
        r"|(?:earlier|past) targets?\b",
    ),
    Operation(
        "rolling_features",
        "feature engineering",
        "Add rolling means and spreads of the lagged target.",
        r"rolling(?: (?:means?|averages?|spreads?|and|or|statistics|features?|windows?))*"
        r"(?: (?:of|over) (?:the )?(?:lagged|past) \w+)?|moving averages?"
        r"|window(?:ed)? (?:means?|statistics|features?)",
    ),
    Operation(
        "text_words",
        "feature engineering",
        "Represent text by TF-IDF of words and word pairs.",
        r"(?:word|token)[- ](?:level )?(?:tf-?idf|n-?grams?)|bag of words|tf-?idf of words",
    ),
    Operation(
        "text_characters",
        "feature engineering",
        "Represent text by TF-IDF of character n-grams within word bounds.",
        r"char(?:acter)?s?[- ](?:level )?(?:tf-?idf|n-?grams?)|tf-?idf of char",
    ),
    Operation(
        "text_statistics",
        "feature engineering",
        "Add lengths, counts and shares of letter kinds of each text.",
        r"text (?:statistics|lengths?)|(?:string|text|word|name) lengths?"
        r"|lengths?(?:, counts)? (?:and|or) (?:counts|shares)|letter (?:counts|shares|kinds)"
        r"|shares of letters?|numbers? of (?:words|characters|letters)",
    ),
    Operation(
        "text_svd",
        "feature engineering",
        "Reduce the TF-IDF matrix to dense components by truncated SVD.",
        r"svd|latent semantic|lsa\b",
    ),
    Operation(
        "image_gradients",
        "feature engineering",
        "Describe images by histograms of oriented gradients.",
        r"(?:oriented )?gradients? (?:histograms?|features?)|hog\b"
        r"|histograms? of (?:oriented )?grad",
    ),
    Operation(
        "image_shifts",
        "training",
        "Augment the training images by shifts of one pixel in each direction.",
        r"augment(?:ation|ing|ed)?\b(?! (?:the )?(?:features?|columns?|table))"
        r"|shift(?:s|ed|ing)? (?:the |all )?(?:training )?images?|images? shift"
        r"|shifted (?:copies|versions)",
    ),
    Operation(
        "pca",
        "feature engineering",
        "Project the numeric columns onto their principal components.",
        r"pca\b|principal components?",
    ),
    Operation(
        "model_linear",
        "model choice",
        "Use a regularised linear model on standardised columns.",
        r"linear (?:model|regression|classifier)s?|ridge|lasso|logistic regression|elastic ?net",
    ),
    Operation(
        "model_forest",
        "model choice",
        "Use a random forest.",
        r"random forests?|\bforests?\b|extra[- ]?trees",
    ),
    Operation(
        "model_boosting",
        "model choice",
        "Use histogram gradient boosting with early stopping.",
        r"boost(?:ing|ed)|gbm\b|gbdt|lightgbm|xgboost|catboost",
    ),
    Operation(
        "model_neighbours",
        "model choice",
        "Use k nearest neighbours on standardised columns.",
        r"k-?nn\b|nearest neighbou?rs?",
    ),
    Operation(
        "model_kernel",
        "model choice",
        "Use a support vector machine with an RBF kernel.",
        r"svm\b|svc\b|svr\b|support vector|rbf|kernel (?:machine|method)",
    ),
    Operation(
        "model_network",
        "model choice",
        "Use a small neural network with early stopping.",
        r"mlp\b|neural net|multi-?layer perceptron|deep (?:model|network|learning)",
    ),
    Operation(
        "class_weights",
        "training",
        "Weigh the classes by their inverse frequency.",
        r"class[- ]weight|balanced? (?:the )?class|inverse frequenc|imbalance",
    ),
    Operation(
        "loss_of_metric",
        "training",
        "Train on the loss that the metric measures (absolute error, Poisson).",
        r"(?:absolute[- ]error|l1|mae|poisson|gamma|quantile|metric(?:'s)?(?: own)?)[- ]"
        r"(?:loss|objective|deviance as (?:the )?loss)"
        r"|loss (?:that )?(?:the metric measures|match\w+ the metric|of the metric)"
        r"|optimi[sz]e the metric(?: itself| directly)",
    ),
    Operation(
        "validate_by_group",
        "training",
        "Validate on whole groups, as the test rows come from new groups.",
        r"group(?:ed)?[- ]?(?:k-?fold|validation|split)|validate (?:on|by) (?:whole )?groups?",
    ),
    Operation(
        "validate_by_time",
        "training",
        "Validate on the latest rows, as the test rows come after the training rows.",
        r"time[- ](?:based|ordered|series)?[- ]?(?:split|validation)|validate (?:on|by) (?:the )?"
        r"(?:time|latest|last)|forward validation",
    ),
    Operation(
        "more_regularisation",
        "hyper-parameters",
        "Regularise more strongly: smaller trees, larger leaves, stronger penalties.",
        r"(?:more|stronger|heavier|increase(?: the)?) (?:regulari[sz]|penalt)|stronger penalt"
        r"|regulari[sz]e (?:it |the model )?(?:more|harder)"
        r"|(?:(?:avoid|reduc|prevent|fight|limit)\w* (?:the )?)?overfit\w*",
    ),
    Operation(
        "more_capacity",
        "hyper-parameters",
        "Give the model more capacity: more and slower trees, larger networks, weaker penalties.",
        r"(?:more|greater|higher) capacity|more (?:trees|iterations|estimators|rounds)"
        r"|(?:lower|smaller|slower)(?: the)? learning rate|larger (?:model|network)",
    ),
    Operation(
        "tune",
        "hyper-parameters",
        "Search the model's main hyper-parameters at random under cross-validation.",
        r"(?:re-?)?tun(?:e|ed|ing)\b(?! (?:the )?(?:decision )?(?:thresholds?|cut-?offs?))"
        r"|hyper-?parameter (?:search|optimi[sz]ation)|random(?:i[sz]ed)? search|grid search|optuna"
        r"|search (?:for )?(?:the )?(?:model's |best |main )*(?:hyper-?)?parameters",
    ),
    Operation(
        "bag_seeds",
        "ensembling",
        "Average several models that differ only in their seed.",
        r"bag(?:ging|ged)?\b|seed averag"
        r"|(?:several|multiple|different|two|three|four|five|six|ten|\d+) (?:random )?seeds"
        r"|averag\w*(?: over)? (?:the )?(?:random )?seeds"
        r"|differ(?:ing|s)?(?: only)? (?:in|by) (?:their |the )?(?:random )?seeds?",
    ),
    Operation(
        "blend",
        "ensembling",
        "Blend models of different families, weighted on out-of-fold predictions.",
        r"blend|ensembl|weighted average of (?:\w+ )?(?:models|predictions)"
        r"|averag\w* (?:the |several |different )?(?:models?|predictions)\b"
        r"(?! that differ only| over \w+ seeds)",
    ),
    Operation(
        "stack",
        "ensembling",
        "Stack models of different families under a linear model on out-of-fold predictions.",
        r"stack(?:s|ing|ed)?\b(?:[^.;]{0,60}?\b(?:under|with|by|using) (?:an? )?"
        r"(?:linear|ridge|logistic)\w*(?: (?:model|regression|meta[- ]?(?:model|learner)))?)?"
        r"|meta[- ]?(?:model|learner)",
    ),
    Operation(
        "tune_threshold",
        "post-processing",
        "Choose decision thresholds on out-of-fold predictions for the metric.",
        r"(?:tun\w+ (?:the )?)?(?:decision )?(?:thresholds?|cut-?offs?)|decision rule",
    ),
    Operation(
        "calibrate",
        "post-processing",
        "Calibrate the predicted probabilities on out-of-fold predictions.",
        r"calibrat|isotonic|platt|temperature scaling",
    ),
    Operation(
        "clip_predictions",
        "post-processing",
        "Clip predictions to the range of the training target.",
        r"clip(?:ping)? (?:the )?predictions?|bound (?:the )?predictions?",
    ),
)
"""Every known operation by name."""


class Mention(msgspec.Struct, frozen=True):
    """Where a text names an operation."""

    operation: Operation
    start: int
    end: int

    def within(self, other: Mention) -> bool:
        """Is this a part of a longer mention?"""
        inside = other.start <= self.start and self.end <= other.end
        return inside and other.end - other.start > self.end - self.start


def mentions(text: str) -> tuple[Mention, ...]:
    """Every mention of an operation, in the order of the text.

    What is only a part of another operation's name does not count: the *lagged target* of a
    rolling mean is no wish for lags.
    """
    found = [
        Mention(operation, match.start(), match.end())
        for operation in OPERATIONS.values()
        for match in operation.pattern.finditer(text)
    ]
    whole = [one for one in found if not any(one.within(other) for other in found)]
    return tuple(sorted(whole, key=lambda one: one.start))


def mentioned(text: str) -> tuple[Operation, ...]:
    """The operations that a text names, in the order in which they are first named."""
    return tuple({one.operation.name: one.operation for one in mentions(text)}.values())
