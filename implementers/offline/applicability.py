"""Which operations can do something for a task and a recipe, and why others can not."""

from __future__ import annotations

from mle_ideator.implementers.offline.shape import Shape
from mle_ideator.recipes import Recipe

SEEDLESS = ("model_linear", "model_kernel", "model_neighbours")
WEIGHTED = ("model_linear", "model_forest", "model_boosting", "model_kernel")


def obstacle(operation: str, recipe: Recipe, shape: Shape) -> str | None:
    """Why the operation is of no use in this recipe on this data; `None` if it is."""
    return _data_obstacle(operation, shape) or _model_obstacle(operation, recipe, shape)


def _data_obstacle(operation: str, shape: Shape) -> str | None:
    profile = shape.profile
    numeric, levels = shape.numbers > 0, bool(shape.columns("category"))
    joined = bool(profile.side_tables)
    missing = any(column.missing for column in profile.columns if column.kind == "number")
    lows = [target.low for target in profile.targets]
    needs: dict[str, tuple[bool, str]] = {
        "join_tables": (joined, "there are no side tables"),
        "impute_missing": (missing or joined, "no number is missing"),
        "rare_levels": (levels, "there are no categorical columns"),
        "frequency_encoding": (levels or joined, "there are no categorical columns"),
        "target_encoding": (levels or joined, "there are no categorical columns"),
        "group_aggregates": (
            (levels and numeric) or joined, "it takes categorical and numeric columns"
        ),
        "clip_outliers": (numeric and not profile.image, "there are no numbers to clip"),
        "interactions": (shape.numbers > 1 and not profile.image, "it takes numeric columns"),
        "ratios": (shape.numbers > 1 and not profile.image, "it takes numeric columns"),
        "pca": (shape.numbers > 2, "there are too few numeric columns"),
        "target_log": (
            shape.is_value and all(low is not None and low > -1 for low in lows),
            "it takes targets above -1",
        ),
        "date_parts": (bool(shape.columns("date")), "there are no dates"),
        "lag_features": (shape.has_past, "the dates tell no past of the target"),
        "rolling_features": (shape.has_past, "the dates tell no past of the target"),
        "image_gradients": (profile.image is not None, "there are no images"),
        "image_shifts": (profile.image is not None, "there are no images"),
        "validate_by_group": (profile.group is not None, "the test rows are not of new groups"),
        "validate_by_time": (shape.forecasts, "the test rows do not come after the training rows"),
        "clip_predictions": (shape.is_value, "the predictions are no values"),
        "calibrate": (
            not shape.is_value and shape.task.prediction == "probability",
            "the predictions are no probabilities",
        ),
        "class_weights": (shape.form in ("binary", "classes", "marks"), "there are no classes"),
        "tune_threshold": (
            shape.task.prediction == "label", "no decision is made: predictions are not labels"
        ),
    }  # fmt: skip
    if operation.startswith("text_"):
        return None if shape.columns("text") else "there are no texts"
    useful, reason = needs.get(operation, (True, ""))
    return None if useful else reason


def _model_obstacle(operation: str, recipe: Recipe, shape: Shape) -> str | None:
    model = recipe.model
    combined = "blend" in recipe.operations or "stack" in recipe.operations
    if operation == "bag_seeds" and model in SEEDLESS and not combined:
        return "this model does not depend on its seed"
    if operation == "class_weights" and model not in WEIGHTED:
        return "this model takes no class weights"
    if operation == "loss_of_metric":
        return _loss_obstacle(model, shape)
    return None


def _loss_obstacle(model: str, shape: Shape) -> str | None:
    boosted = ("mae", "median_ae", "mape", "smape", "wape", "poisson_deviance", "gamma_deviance",
               "pinball_90")  # fmt: skip
    linear = ("mae", "median_ae", "poisson_deviance", "gamma_deviance")
    known = {"model_boosting": boosted, "model_linear": linear}.get(model, ())
    if shape.is_value and shape.metric in known:
        return None
    return f"this model can not train on {shape.task.metric.name} itself"
