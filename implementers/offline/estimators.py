"""Model families as source text: the estimator, its settings by size, what a search may vary."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from mle_ideator.implementers.offline.shape import Shape
from mle_ideator.recipes import Recipe

T = TypeVar("T")

TREES = ("boosting", "forest")
KERNEL_ROWS = 5000
"""A kernel machine's cost grows with the square of the rows; it learns from a sample of these."""

IMPORTS = (
    "import os",
    "import warnings",
    "from functools import partial",
    "from threadpoolctl import threadpool_limits",
    *(
        f"from sklearn.{module} import {name}"
        for module, names in {
            "linear_model": "HuberRegressor LogisticRegression PoissonRegressor Ridge",
            "svm": "LinearSVC SVC SVR",
            "ensemble": "HistGradientBoostingClassifier HistGradientBoostingRegressor "
            "RandomForestClassifier RandomForestRegressor",
            "neighbors": "KNeighborsClassifier KNeighborsRegressor",
            "neural_network": "MLPClassifier MLPRegressor",
            "multiclass": "OneVsRestClassifier",
            "multioutput": "MultiOutputRegressor",
            "compose": "ColumnTransformer TransformedTargetRegressor make_column_selector",
            "pipeline": "Pipeline make_pipeline",
            "impute": "SimpleImputer",
            "decomposition": "PCA",
            "preprocessing": "FunctionTransformer OneHotEncoder OrdinalEncoder StandardScaler",
            "feature_extraction.text": "TfidfVectorizer",
            "exceptions": "ConvergenceWarning",
        }.items()
        for name in names.split()
    ),
)
"""What generated code may import beyond the imports of the snippets."""


@dataclass(frozen=True)
class Estimator:
    """One estimator as an expression over `seed`."""

    name: str
    settings: dict[str, object]
    outer: str = ""
    """A wrapper for several outputs or a scaled target, with `{}` where the estimator stands."""
    path: str = ""
    """Where a wrapped estimator's parameters are found."""
    space: dict[str, object] = field(default_factory=dict)
    """What a random search may vary, by the estimator's parameter."""

    @property
    def code(self) -> str:
        inner = ", ".join(f"{name}={_literal(value)}" for name, value in self.settings.items())
        call = f"{self.name}({inner})"
        return self.outer.format(call) if self.outer else call

    @property
    def search_space(self) -> dict[str, object]:
        return {f"model__{self.path}{name}": values for name, values in self.space.items()}


class Raw(str):
    """Source text that stands for itself."""


def _literal(value: object) -> str:
    if isinstance(value, str) and not isinstance(value, Raw):
        return f'"{value}"'
    return str(value)


def estimator(family: str, recipe: Recipe, shape: Shape, rows: int, columns: int) -> Estimator:
    """The family's estimator for a recipe, for that many training rows and columns in a fit."""
    makers = {
        "linear": _linear, "boosting": _boosting, "forest": _forest,
        "neighbours": _neighbours, "kernel": _kernel, "network": _network,
    }  # fmt: skip
    return makers[family](_Choice(recipe, shape, rows, columns))


@dataclass(frozen=True)
class _Choice:
    recipe: Recipe
    shape: Shape
    rows: int
    columns: int

    def has(self, operation: str) -> bool:
        return operation in self.recipe.operations

    def by_strength(self, weak: T, usual: T, strong: T) -> T:
        """A setting for less capacity, the usual one, and one for more."""
        if self.has("more_regularisation"):
            return weak
        return strong if self.has("more_capacity") else usual

    @property
    def weights(self) -> dict[str, object]:
        return {"class_weight": "balanced"} if self.has("class_weights") else {}

    @property
    def kind(self) -> str:
        return "Regressor" if self.shape.is_value else "Classifier"

    @property
    def metric(self) -> str:
        return self.shape.metric if self.has("loss_of_metric") else ""

    def wrapped(
        self, name: str, settings: dict[str, object], space: dict[str, object], *, native: bool
    ) -> Estimator:
        """With a wrapper for several outputs, unless the estimator copes with them itself."""
        if native or self.shape.form in ("value", "binary", "classes"):
            return Estimator(name, settings, space=space)
        many = "MultiOutputRegressor" if self.shape.is_value else "OneVsRestClassifier"
        return Estimator(name, settings, f"{many}({{}})", "estimator__", space)


def _linear(choice: _Choice) -> Estimator:
    if choice.shape.is_value:
        return _linear_values(choice)
    strength = choice.by_strength(0.05, 1.0, 10.0)
    space: dict[str, object] = {"C": [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0]}
    settings: dict[str, object] = {"C": strength, "max_iter": 300}
    if choice.shape.columns("text") and choice.rows * choice.shape.outputs > 50_000:
        settings = {"C": round(strength * 0.3, 3)}
        return choice.wrapped("LinearSVC", settings | choice.weights, space, native=False)
    return choice.wrapped("LogisticRegression", settings | choice.weights, space, native=False)


def _linear_values(choice: _Choice) -> Estimator:
    settings: dict[str, object]
    if choice.metric in ("poisson_deviance", "gamma_deviance"):
        settings = {"alpha": choice.by_strength(1.0, 0.01, 1e-4), "max_iter": 500}
        space: dict[str, object] = {"alpha": [1e-4, 1e-3, 1e-2, 0.1, 1.0]}
        return choice.wrapped("PoissonRegressor", settings, space, native=False)
    if choice.metric in ("mae", "median_ae"):
        settings = {"epsilon": 1.05, "alpha": choice.by_strength(1.0, 1e-3, 1e-5)}
        space = {"alpha": [1e-5, 1e-3, 0.1, 1.0]}
        return choice.wrapped("HuberRegressor", settings, space, native=False)
    settings = {"alpha": choice.by_strength(30.0, 1.0, 0.1)}
    space = {"alpha": [0.01, 0.1, 1.0, 10.0, 100.0]}
    return choice.wrapped("Ridge", settings, space, native=True)


def _iterations(choice: _Choice) -> int:
    """As many as about two seconds a fit allow on two cores."""
    trees = choice.shape.outputs if choice.shape.form != "binary" else 1
    seconds_a_tree = 0.002 + 1.2e-8 * choice.rows * choice.columns
    return int(min(max(2.0 / (trees * seconds_a_tree), 30), 250))


def _boosting(choice: _Choice) -> Estimator:
    most = _iterations(choice)
    rate = choice.by_strength(0.06, 0.08, 0.04) * (1 if most >= 150 else 2 if most >= 60 else 3)
    settings: dict[str, object] = {
        "learning_rate": round(rate, 3),
        "max_iter": choice.by_strength(most, most, most * 2),
        "max_leaf_nodes": choice.by_strength(8, 31, 63),
        "min_samples_leaf": min(choice.by_strength(60, 20, 10), max(choice.rows // 20, 1)),
        "l2_regularization": choice.by_strength(10.0, 1.0, 0.1),
    }
    if choice.has("bag_seeds"):
        settings["max_features"] = 0.5
    losses = {"mae": "absolute_error", "median_ae": "absolute_error", "wape": "absolute_error",
              "mape": "absolute_error", "smape": "absolute_error", "poisson_deviance": "poisson",
              "gamma_deviance": "gamma"}  # fmt: skip
    if choice.metric in losses:
        settings["loss"] = losses[choice.metric]
    elif choice.metric == "pinball_90":
        settings |= {"loss": "quantile", "quantile": 0.9}
    settings |= choice.weights
    # a sample of the rows says when to stop; with very few rows there is none to spare
    settings |= {"early_stopping": choice.rows >= 200, "random_state": Raw("seed")}
    space: dict[str, object] = {
        "learning_rate": [round(rate * factor, 3) for factor in (0.5, 0.75, 1.0, 1.5)],
        "max_leaf_nodes": [6, 10, 16, 31, 63],
        "min_samples_leaf": [5, 10, 20, 50],
        "l2_regularization": [0.0, 0.1, 1.0, 10.0],
        "max_features": [0.3, 0.5, 0.8, 1.0],
    }
    return choice.wrapped(f"HistGradientBoosting{choice.kind}", settings, space, native=False)


def _forest(choice: _Choice) -> Estimator:
    trees = 200 if choice.rows * choice.columns < 300_000 else 100
    settings: dict[str, object] = {
        "n_estimators": choice.by_strength(trees, trees, 2 * trees),
        "min_samples_leaf": choice.by_strength(8, 2 if choice.rows < 5000 else 3, 1),
        "max_features": 0.4 if choice.shape.is_value else "sqrt",
        **choice.weights,
        "n_jobs": Raw("JOBS"),
        "random_state": Raw("seed"),
    }
    space: dict[str, object] = {
        "min_samples_leaf": [1, 2, 4, 8, 16],
        "max_features": [0.2, 0.4, 0.7, "sqrt"],
    }
    native = choice.shape.is_value
    return choice.wrapped(f"RandomForest{choice.kind}", settings, space, native=native)


def _neighbours(choice: _Choice) -> Estimator:
    settings: dict[str, object] = {
        "n_neighbors": min(choice.by_strength(30, 10, 4), max(choice.rows // 3, 1)),
        "weights": "distance",
        "n_jobs": Raw("JOBS"),
    }
    most = max(choice.rows // 3, 1)
    space: dict[str, object] = {"n_neighbors": sorted({min(k, most) for k in (2, 4, 8, 16, 32)})}
    native = choice.shape.is_value
    return choice.wrapped(f"KNeighbors{choice.kind}", settings, space, native=native)


def _kernel(choice: _Choice) -> Estimator:
    settings: dict[str, object] = {"C": choice.by_strength(0.5, 3.0, 20.0)}
    space: dict[str, object] = {"C": [0.3, 1.0, 3.0, 10.0, 30.0]}
    if not choice.shape.is_value:
        settings |= choice.weights
        return choice.wrapped("SVC", settings, space, native=False)
    many = "MultiOutputRegressor({})" if choice.shape.form == "values" else "{}"
    path = "regressor__estimator__" if choice.shape.form == "values" else "regressor__"
    return Estimator("SVR", settings, _scaled(many), path, space)


def _network(choice: _Choice) -> Estimator:
    width = choice.by_strength(32, 64, 128)
    settings: dict[str, object] = {
        "hidden_layer_sizes": (width, width // 2),
        "alpha": choice.by_strength(1.0, 0.01, 1e-4),
        "learning_rate_init": 0.003,
        "batch_size": 64 if choice.rows < 5000 else 256,
        "max_iter": choice.by_strength(60, 60, 120),
        "early_stopping": choice.rows >= 200,
        "random_state": Raw("seed"),
    }
    space: dict[str, object] = {
        "alpha": [1e-4, 1e-2, 0.1, 1.0],
        "learning_rate_init": [0.001, 0.003, 0.01],
    }
    outer, path = (_scaled("{}"), "regressor__") if choice.shape.is_value else ("", "")
    return Estimator(f"MLP{choice.kind}", settings, outer, path, space)


def _scaled(inner: str) -> str:
    """For models that want a target of mean 0 and spread 1."""
    return f"TransformedTargetRegressor({inner}, transformer=StandardScaler())"
