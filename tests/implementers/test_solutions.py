"""Every operation makes a script that runs, scores itself and answers every test row."""

from __future__ import annotations

import subprocess
import sys
from itertools import combinations

import pytest

from mle_ideator.implementers.offline.applicability import obstacle
from mle_ideator.implementers.offline.editing import with_operation
from mle_ideator.implementers.offline.repertoire import first_recipe
from mle_ideator.operations import OPERATIONS
from mle_ideator.recipes import Recipe, recipe_in

MODELS = [name for name in OPERATIONS if name.startswith("model_")]
FORMS = ["regression", "counts", "two_values", "binary", "several_classes", "ranks", "many_labels",
         "text", "image", "forecast", "gaps", "joined", "grouped"]  # fmt: skip
FAST = {"image": "model_kernel", "text": "model_linear"}


def recipe_for(toy, *operations: str, folds: int = 2) -> Recipe:
    """The first recipe of the toy with the operations added."""
    recipe = Recipe(operations=first_recipe(toy.shape, 0).operations, folds=folds)
    for name in operations:
        recipe = with_operation(recipe, name)
    return recipe


def code_for(toy, *operations: str) -> str:
    recipe = recipe_for(toy, *operations)
    return toy.code(*recipe.operations, folds=recipe.folds)


@pytest.mark.parametrize("form", FORMS)
def test_the_first_solution_of_every_form(toys, form):
    toy = toys[form]
    code = code_for(toy)
    assert recipe_in(code) == recipe_for(toy)
    toy.check(code)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("model", [name for name in MODELS if name != "model_linear"])
def test_every_model_on_every_form(toys, form, model):
    toys[form].check(code_for(toys[form], model))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("operation", [name for name in OPERATIONS if name not in MODELS])
def test_every_operation_alone_or_why_it_does_not_apply(toys, form, operation):
    toy = toys[form]
    fitting = [m for m in ("model_linear", "model_boosting")
               if obstacle(operation, recipe_for(toy, m), toy.shape) is None]  # fmt: skip
    if not fitting:
        assert obstacle(operation, recipe_for(toy, "model_linear"), toy.shape).strip()
        return
    toy.check(code_for(toy, fitting[0], operation))


PAIRS = [
    ("regression", pair)
    for pair in combinations(
        ["target_log", "target_encoding", "group_aggregates", "pca", "tune", "blend", "stack"], 2
    )
    if pair != ("blend", "stack")
] + [
    ("several_classes", ("stack", "calibrate")),
    ("several_classes", ("blend", "bag_seeds")),
    ("several_classes", ("calibrate", "class_weights")),
    ("ranks", ("stack", "tune_threshold")),
    ("ranks", ("class_weights", "tune_threshold")),
    ("many_labels", ("stack", "calibrate")),
    ("many_labels", ("pca", "bag_seeds")),
    ("text", ("text_characters", "text_svd")),
    ("text", ("text_characters", "text_words")),
    ("text", ("text_statistics", "tune_threshold")),
    ("image", ("image_gradients", "image_shifts")),
    ("image", ("image_shifts", "pca")),
    ("forecast", ("lag_features", "rolling_features")),
    ("forecast", ("lag_features", "stack")),
    ("forecast", ("rolling_features", "target_log")),
    ("gaps", ("lag_features", "rolling_features")),
    ("joined", ("join_tables", "group_aggregates")),
    ("joined", ("join_tables", "target_encoding")),
    ("counts", ("loss_of_metric", "bag_seeds")),
    ("two_values", ("blend", "clip_predictions")),
]


@pytest.mark.slow
@pytest.mark.parametrize(("form", "pair"), PAIRS)
@pytest.mark.parametrize("model", ["model_linear", "model_boosting", "model_forest"])
def test_pairs_of_operations(toys, form, pair, model):
    toys[form].check(code_for(toys[form], model, *pair))


@pytest.mark.parametrize("form", FORMS)
def test_generated_code_is_clean(toys, form, tmp_path):
    """As ruff sees it with this project's settings, with as many operations as apply."""
    toy = toys[form]
    recipe = recipe_for(toy)
    for name in OPERATIONS:
        if name not in MODELS and obstacle(name, recipe, toy.shape) is None:
            recipe = with_operation(recipe, name)
    for number, model in enumerate(MODELS):
        code = toy.code(*with_operation(recipe, model).operations)
        compile(code, "solution.py", "exec")
        (tmp_path / f"solution_{number}.py").write_text(code, encoding="utf-8")
    config = ["--config", "pyproject.toml", "--no-cache"]
    found = subprocess.run(
        [sys.executable, "-m", "ruff", "check", *config, str(tmp_path)], capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stdout


def test_the_same_recipe_makes_the_same_code_and_score(toys):
    toy = toys["several_classes"]
    first, again = (code_for(toy, "model_boosting") for _ in range(2))
    assert first == again
    assert toy.run(first)[0] == toy.run(again)[0]


def test_a_script_uses_its_seed(toys):
    toy = toys["regression"]
    scores = [toy.check(toy.code("model_forest", seed=seed)) for seed in (0, 1)]
    assert scores[0] != scores[1]


def test_the_operations_meant_for_a_task_improve_it(toys):
    """Fakes would not: each operation has to do what it says."""
    expected = [
        ("regression", "model_linear", "target_log"),
        ("text", "model_linear", "text_characters"),
        ("forecast", "model_boosting", "lag_features"),
        ("gaps", "model_linear", "date_parts"),
    ]
    for form, model, operation in expected:
        toy = toys[form]
        without = toy.check(code_for(toy, model))
        better = toy.check(code_for(toy, model, operation))
        gain = better - without if toy.task.metric.higher_is_better else without - better
        assert gain > 0, (form, operation, without, better)
