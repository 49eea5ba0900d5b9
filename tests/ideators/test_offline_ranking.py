"""The offline ideator's choice for each kind of task, and how a session's evidence moves it."""

from __future__ import annotations

import pytest

from mle_ideator.ideators.offline.ranking import LEAST_GAIN, rank
from mle_ideator.recipes import Column


def number(name: str, skew: float = 0.0, missing: float = 0.0) -> Column:
    return Column(name=name, kind="number", levels=500, missing=missing, skew=skew)


def column(name: str, kind: str, levels: int = 500) -> Column:
    return Column(name=name, kind=kind, levels=levels)


NUMBERS = (number("width"), number("depth"), number("age"))
LABEL = {"prediction": "label", "classes": ("a", "b", "c")}
PROBABILITY = {"prediction": "probability", "classes": ("0", "1")}

FIRST_CHOICES = {
    "numbers under a linear model": (
        {"metric": "rmse"},
        NUMBERS,
        {},
        ["model_linear"],
        "model_boosting",
    ),
    "numbers under boosting": ({"metric": "rmse"}, NUMBERS, {}, ["model_boosting"], "interactions"),
    "spend with a log metric": (
        {"metric": "rmsle"},
        NUMBERS,
        {"skew": 9.0},
        ["model_boosting"],
        "target_log",
    ),
    "a long-tailed target": (
        {"metric": "rmse"},
        NUMBERS,
        {"skew": 6.0},
        ["model_boosting"],
        "target_log",
    ),
    "daily forecast": (
        {"metric": "mae"},
        (column("day", "date"),),
        {"time": "day"},
        ["model_boosting"],
        "lag_features",
    ),
    "dates without a forecast": (
        {"metric": "mae"},
        (column("day", "date"), number("x")),
        {},
        ["model_boosting"],
        "date_parts",
    ),
    "names to classes": (
        {"metric": "macro_f1", "higher": True, "type": "text-classification", **LABEL},
        (column("name", "text"),),
        {},
        ["model_forest"],
        "text_characters",
    ),
    "digits": (
        {"metric": "accuracy", "higher": True, "type": "image-classification", **LABEL},
        (),
        {"image": (28, 28), "unlisted": 784},
        ["model_linear"],
        "model_kernel",
    ),
    "digits under a kernel machine": (
        {"metric": "accuracy", "higher": True, "type": "image-classification", **LABEL},
        (),
        {"image": (28, 28), "unlisted": 784},
        ["model_kernel"],
        "image_gradients",
    ),
    "tables to join": (
        {"metric": "auc", "higher": True, **PROBABILITY},
        (column("carrier", "category", 16), number("hour")),
        {"side_tables": ("weather.csv", "planes.csv")},
        ["model_boosting"],
        "join_tables",
    ),
    "merchants of high cardinality": (
        {"metric": "auc", "higher": True, **PROBABILITY},
        (column("merchant", "category", 900),),
        {},
        ["model_boosting"],
        "target_encoding",
    ),
    "rare classes": (
        {"metric": "macro_f1", "higher": True, **LABEL},
        (number("x"),),
        {},
        ["model_boosting"],
        "tune_threshold",
    ),
    "an ordinal metric": (
        {"metric": "qwk", "higher": True, **LABEL},
        (number("x"),),
        {},
        ["model_boosting"],
        "tune_threshold",
    ),
    "counts": (
        {"metric": "poisson_deviance"},
        (number("x"),),
        {"skew": 4.0},
        ["model_boosting"],
        "loss_of_metric",
    ),
    "absolute error": ({"metric": "mae"}, (number("x"),), {}, ["model_boosting"], "loss_of_metric"),
    "holes": (
        {"metric": "rmse"},
        (number("x", missing=0.4),),
        {},
        ["model_forest", "tune"],
        "model_boosting",
    ),
    "forest probabilities": (
        {"metric": "log_loss", **PROBABILITY},
        (number("x"),),
        {},
        ["model_forest", "bag_seeds"],
        "model_boosting",
    ),
}


@pytest.mark.parametrize("case", FIRST_CHOICES)
def test_first_choice(case, story, task, profile, code):
    about_task, columns, about_profile, recipe, expected = FIRST_CHOICES[case]
    told = story(task(**about_task), profile(*columns, **about_profile)).solved(code(*recipe), 1.0)
    best, *rest = rank(told.state())
    explained = "\n".join(c.explain() for c in [best, *rest[:4]])
    assert best.operations[0] == expected, explained


@pytest.fixture
def after(story, task, profile, code):
    """The ranking after an idea was given on a linear model, and what came of it."""

    def after(action: str, *outcome: tuple, code_after: str | None = None, **rest):
        told = story(task("mae"), profile(*NUMBERS, skew=5.0)).solved(code("model_boosting"), 10.0)
        told.idea(action)
        for kind, *values in outcome:
            getattr(told, kind)(*values)
        return {c.operations[0]: c for c in rank(told.state(**rest))}

    return after


@pytest.mark.parametrize("status", ["error", "timeout", "died"])
def test_an_operation_that_failed_is_not_proposed_again(after, status):
    ranked = after("Add ratios of columns.", ("cell", "boom", status))
    assert ranked["ratios"].gain == 0
    assert "failed" in ranked["ratios"].explain()


def test_an_operation_that_failed_stays_out_on_another_base(after, code):
    ranked = after(
        "Add ratios of columns.",
        ("cell", "boom", "error"),
        ("idea", "Use a random forest."),
        ("solved", code("model_forest"), 9.0),
    )
    assert ranked["ratios"].gain == 0


def test_what_did_not_help_on_this_solution_is_not_repeated_on_it(after, code):
    ranked = after("Add ratios.", ("solved", code("model_boosting", "ratios"), 11.0))
    assert ranked["ratios"].gain == 0
    assert "this very solution" in ranked["ratios"].explain()


def test_what_did_not_help_elsewhere_is_damped(after, code):
    fresh = after("Think.", ("solved", code("model_boosting"), 10.0))["ratios"].gain
    ranked = after(
        "Add ratios.",
        ("solved", code("model_boosting", "ratios"), 11.0),
        ("idea", "Use a random forest.", "Revert to #1: ratios did not help."),
        ("solved", code("model_forest"), 8.0),
    )
    assert 0 < ranked["ratios"].gain < fresh


def test_kin_of_what_helped_rises_and_kin_of_what_did_not_sinks(after, code):
    fresh = after("Think.", ("solved", code("model_boosting"), 10.0))["interactions"].gain
    good = after("Add ratios.", ("solved", code("model_boosting", "ratios"), 9.0))
    bad = after("Add ratios.", ("solved", code("model_boosting", "ratios"), 11.0))
    assert bad["interactions"].gain < fresh < good["interactions"].gain
    assert "ratios helped" in good["interactions"].explain()


def test_a_mended_failure_is_no_failure(after, code):
    ranked = after(
        "Add ratios.",
        ("cell", "boom", "error"),
        ("solved", code("model_boosting", "ratios"), 9.0),
    )
    assert "ratios" not in ranked
    assert "ratios helped" in ranked["interactions"].explain()


def test_what_was_not_carried_out_is_not_asked_for_again(after, code):
    ranked = after("Add ratios.", ("solved", code("model_boosting"), 9.0))
    assert ranked["ratios"].gain == 0
    assert "not carried out" in ranked["ratios"].explain()
    assert "ratios" not in ranked["interactions"].explain()


def test_an_idea_that_nobody_carried_out_is_no_evidence(after):
    ranked = after("Add ratios of columns.")
    assert ranked["ratios"].gain > 0


def test_ensembles_come_late_and_models_early(after):
    early = after("Think.", help_requests=20)
    late = after("Think.", help_requests=0)
    assert early["blend"].gain < late["blend"].gain
    assert early["model_forest"].gain > late["model_forest"].gain


def test_what_is_dear_waits_when_time_is_short(after):
    assert after("Think.", seconds=8.0)["stack"].gain < after("Think.")["stack"].gain / 5


def test_two_that_belong_together_are_proposed_together(story, task, profile, code):
    told = story(task("mae"), profile(column("day", "date"), time="day"))
    best = rank(told.solved(code("model_boosting", "validate_by_time"), 1.0).state())[0]
    assert best.operations == ("lag_features", "rolling_features")


def test_a_forecast_from_less_than_a_year_has_little_of_its_dates(story, task, profile, code):
    def gain(days: int) -> float:
        told = story(task("mae"), profile(column("day", "date", days), time="day"))
        told.solved(code("model_boosting"), 1.0)
        return {c.operations[0]: c.gain for c in rank(told.state())}["date_parts"]

    assert gain(273) < gain(2000)


def test_equal_gains_are_ordered_by_the_seed(story, task, profile):
    def order(seed: int) -> list[str]:
        told = story(task(), profile(*NUMBERS), seed=seed)
        return [c.operations[0] for c in rank(told.state())]

    assert order(1) == order(1)
    assert {tuple(order(seed)) for seed in range(20)} != {tuple(order(0))}


def test_every_score_is_explained(story, task, profile, code):
    told = story(task("mae"), profile(*NUMBERS)).solved(code("model_linear"), 1.0)
    for candidate in rank(told.state()):
        line = candidate.explain()
        assert "\n" not in line
        assert f"{candidate.gain:.3f}" in line
        assert all(f.why and f.name in line for f in candidate.factors)


def test_without_a_profile_only_what_needs_none_is_proposed(story, task):
    told = story(task(type="tabular-regression")).solved("model = Ridge()", 1.0)
    names = {c.operations[0] for c in rank(told.state()) if c.gain >= LEAST_GAIN}
    assert "model_boosting" in names
    assert not names & {"date_parts", "target_encoding", "text_words", "join_tables", "ratios"}
