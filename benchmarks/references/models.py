"""The models of each rung, from scikit-learn alone; each seeded, each made for numbers or classes.

They are small: all of a task's references together should take a few minutes on one core.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeAlias

from sklearn import dummy, ensemble, linear_model, naive_bayes, neighbors, tree

from mle_ideator.benchmarks.references.outputs import Wish

SEED = 0
Encoding: TypeAlias = Literal["codes", "dense", "numbers", "as made"]
"""How features become numbers (`encoding`); `as made`: they are numbers, perhaps sparse."""
MANY_ROWS = 8_000
"""Beyond, a tree of a forest sees so many rows, and neighbours are sought among so many."""


@dataclass(frozen=True)
class Model:
    """One model, or the mean of several, which may be chosen by how well they do."""

    name: str
    make: Callable[[Wish], Any] | None = None
    """The estimator."""
    encoding: Encoding = "codes"
    suited: bool = False
    """Does it learn the metric's own loss, on the target's best scale?"""
    most_rows: int | None = None
    """It learns from so many of the training rows, drawn at random."""
    blend: tuple[Model, ...] = ()
    best_of: tuple[Model, ...] = ()
    """Of these it is the mean of those at `places`, from the best on training rows kept aside."""
    places: tuple[int, ...] = (0,)


def constants() -> Iterator[Model]:
    """The best that can be said without looking at a row."""
    names = ("mean", "median", "lower quartile", "upper quartile")
    numbers = (
        {"strategy": "mean"},
        {"strategy": "median"},
        {"strategy": "quantile", "quantile": 0.25},
        {"strategy": "quantile", "quantile": 0.75},
    )
    classes = ("prior", "uniform", "stratified", "most_frequent")
    for name, number, strategy in zip(names, numbers, classes, strict=True):

        def make(wish: Wish, number: Any = number, strategy: str = strategy) -> Any:
            if wish.classify:
                return dummy.DummyClassifier(strategy=strategy, random_state=SEED)
            return dummy.DummyRegressor(**number)

        yield Model(f"constant {name} or {strategy}", make, "as made")


def linear(strengths: tuple[float, ...], encoding: Literal["dense", "numbers"]) -> Iterator[Model]:
    """Ridge, or logistic regression, by the strength of the penalty."""
    for alpha in strengths:

        def make(wish: Wish, alpha: float = alpha) -> Any:
            if wish.classify:
                return linear_model.LogisticRegression(C=1 / alpha, max_iter=1000, tol=1e-3)
            return linear_model.Ridge(alpha=alpha)

        which = "" if encoding == "dense" else " of numbers"
        yield Model(f"linear {alpha:g}{which}", make, "dense" if encoding == "dense" else encoding)


def trees() -> Iterator[Model]:
    """One tree, by depth, then by the rows of a leaf."""
    for depth in (1, 2, 3, 4, 5, 6, 8, 10, 14, None):
        yield Model(f"tree depth {depth or 'any'}", _tree(max_depth=depth))
    for rows in (5, 20, 50, 100):
        yield Model(f"tree leaf {rows}", _tree(min_samples_leaf=rows))
    yield Model("tree depth 5 of numbers", _tree(max_depth=5), "numbers")


def nearest() -> Iterator[Model]:
    """Neighbours, by their number."""
    for number in (1, 3, 5, 10, 20, 50, 100):
        yield Model(f"neighbours {number}", _nearest(number), "dense", most_rows=MANY_ROWS)
    for number in (10, 30):
        make = _nearest(number, weights="distance")
        yield Model(f"neighbours {number} by distance", make, "dense", most_rows=MANY_ROWS)


def simple() -> Iterator[Model]:
    """Naive Bayes, or sparse lines."""
    for strength in (0.01, 0.1):

        def make(wish: Wish, strength: float = strength) -> Any:
            if wish.classify:
                return naive_bayes.GaussianNB(var_smoothing=strength)
            return linear_model.ElasticNet(alpha=strength)

        yield Model(f"naive or sparse {strength:g}", make, "dense")


def small_forests() -> Iterator[Model]:
    """Few trees, by kind, number and depth."""
    for extra in (False, True):
        kind = "extra trees" if extra else "forest"
        for number in (10, 30):
            for depth in (4, 8, None):
                make = forest(number, extra=extra, max_depth=depth)
                yield Model(f"{kind} {number} depth {depth or 'any'}", make)
    yield Model("forest 30 of numbers", forest(30), "numbers")


def default_forests() -> Iterator[Model]:
    yield Model("forest default", forest(100), suited=True)
    yield Model("extra trees default", forest(100, extra=True), suited=True)


def small_boosting() -> Iterator[Model]:
    """Boosting as it comes, and with too little of it."""
    for rounds in (5, 10, 20, 40):
        yield Model(f"boosting {rounds} rounds", boosting(rounds), suited=True)
    yield Model("boosting depth 2", boosting(100, max_depth=2), suited=True)
    yield Model("boosting rate 0.5", boosting(100, learning_rate=0.5), suited=True)
    yield Model("boosting default", boosting(100), suited=True)


def weak() -> list[Model]:
    """About 64, no boosting of them tuned."""
    return [
        *constants(),
        *linear((0.1, 1, 10, 100, 1_000), "dense"),
        *linear((1, 100), "numbers"),
        *trees(),
        *nearest(),
        *simple(),
        *small_forests(),
        *default_forests(),
        *large_forests().values(),
        *small_boosting(),
    ]


_GRID: dict[str, dict[str, Any]] = {
    "default": {"rounds": 100},
    "long": {"rounds": 300},
    "many leaves": {"rounds": 150, "max_leaf_nodes": 63},
    "few leaves": {"rounds": 100, "max_leaf_nodes": 15},
    "third of columns": {"rounds": 100, "max_features": 0.3},
    "slow": {"rounds": 200, "learning_rate": 0.05},
    "slow half of columns": {"rounds": 200, "learning_rate": 0.05, "max_features": 0.5},
    "slow third of columns": {"rounds": 200, "learning_rate": 0.05, "max_features": 0.3},
    "slow small leaves": {"rounds": 200, "learning_rate": 0.05, "min_samples_leaf": 8},
    "slow large leaves": {"rounds": 200, "learning_rate": 0.05, "min_samples_leaf": 50},
    "slow penalty": {"rounds": 200, "learning_rate": 0.05, "l2_regularization": 10.0},
    "slow few leaves": {"rounds": 250, "learning_rate": 0.05, "max_leaf_nodes": 8},
    "slower half of columns": {
        "rounds": 300,
        "learning_rate": 0.03,
        "max_leaf_nodes": 15,
        "max_features": 0.5,
    },
    "gentle": {
        "rounds": 150,
        "learning_rate": 0.04,
        "max_leaf_nodes": 8,
        "min_samples_leaf": 40,
        "max_features": 0.5,
    },
    "gentle, fewest leaves": {
        "rounds": 250,
        "learning_rate": 0.04,
        "max_leaf_nodes": 4,
        "min_samples_leaf": 40,
        "max_features": 0.5,
    },
}


@cache  # the same models each time, so that what they put out is found again
def grid() -> dict[str, Model]:
    """What boosting is tuned over: from much to little of it."""
    return {
        name: Model(f"boosting {name}", boosting(**options), suited=True)
        for name, options in _GRID.items()
    }


@cache
def large_forests() -> dict[str, Model]:
    """Forests with care, by name."""
    made = {}
    for rows in (2, 5, 10):
        make = forest(80, min_samples_leaf=rows, max_features=0.5)
        made[f"forest {rows}"] = Model(f"forest leaf {rows}", make, suited=True)
    for rows in (2, 5):
        make = forest(80, extra=True, min_samples_leaf=rows, max_features=0.7)
        made[f"extra {rows}"] = Model(f"extra trees leaf {rows}", make, suited=True)
    return made


def tuned() -> dict[str, Model]:
    """Boosting and forests with care, by name."""
    return grid() | large_forests()


@cache
def line() -> Model:
    """A linear model with the metric's target."""
    return Model("linear", next(linear((10,), "dense")).make, "dense", suited=True)


def blended(name: str, *models: Model) -> Model:
    return Model(f"blend of {name}", suited=True, blend=models)


def boosted() -> list[Model]:
    """20 of tuned boosting, for columns as they come."""
    forests = large_forests()
    forest_, extra = forests["forest 2"], forests["extra 2"]
    return [
        *(_best_of_grid(place) for place in range(6)),
        *(_best_of_grid(*range(number)) for number in (2, 3, 4, 5, 6)),
        _best_of_grid(0, 2),
        _best_of_grid(1, 2),
        _best_of_grid(0, 1, 3),
        blended("tuned boosting and forest", _best_of_grid(0), forest_),
        blended("2 boosting and forest", _best_of_grid(0, 1), _best_of_grid(0), forest_),
        blended("3 boosting and forest", _best_of_grid(0, 1, 2), forest_),
        blended("3 boosting and extra trees", _best_of_grid(0, 1, 2), extra),
        blended("3 boosting and trees", *_twice(_best_of_grid(0, 1, 2)), forest_, extra),
        blended("5 boosting and trees", *_twice(_best_of_grid(*range(5))), forest_, extra),
    ]


def engineered() -> list[Model]:
    """11, for columns with some features made."""
    forest_ = large_forests()["forest 5"]
    return [
        line(),
        Model("tree leaf 20", _tree(min_samples_leaf=20), suited=True),
        *default_forests(),
        Model("boosting default", boosting(100), suited=True),
        *(_best_of_grid(place) for place in range(3)),
        _best_of_grid(0, 1),
        _best_of_grid(0, 1, 2),
        blended("3 boosting and forest", *_twice(_best_of_grid(0, 1, 2)), forest_),
    ]


def best() -> list[Model]:
    """11, for the best features."""
    forests = large_forests()
    forest_, extra = forests["forest 2"], forests["extra 2"]
    return [
        *(_best_of_grid(place) for place in range(4)),
        *(_best_of_grid(*range(number)) for number in (2, 3, 4, 5)),
        blended("3 boosting and forest", *_twice(_best_of_grid(0, 1, 2)), forest_),
        blended("3 boosting and trees", *_twice(_best_of_grid(0, 1, 2)), forest_, extra),
        blended("5 boosting and trees", *_twice(_best_of_grid(*range(5))), forest_, extra),
    ]


def _best_of_grid(*places: int) -> Model:
    """Tuned boosting: those that come out at these places, from 0, on rows kept aside."""
    named = ", ".join(str(place + 1) for place in places)
    which = f"tuned boosting {named}" if len(places) == 1 else f"blend of tuned boosting {named}"
    return Model(which, suited=True, best_of=tuple(grid().values()), places=places)


def _twice(model: Model) -> tuple[Model, Model]:
    """For a blend in which it counts double."""
    return model, model


def forest(number: int, *, extra: bool = False, **options: Any) -> Callable[[Wish], Any]:
    def make(wish: Wish) -> Any:
        kind = ("ExtraTrees" if extra else "RandomForest") + (
            "Classifier" if wish.classify else "Regressor"
        )
        return getattr(ensemble, kind)(
            n_estimators=number,
            random_state=SEED,
            bootstrap=True,
            max_samples=MANY_ROWS,
            **options,
        )

    return make


def boosting(rounds: int, **options: Any) -> Callable[[Wish], Any]:
    def make(wish: Wish) -> Any:
        shared = {"random_state": SEED, "early_stopping": False, **options}
        trees = max(wish.classes if wish.classes > 2 else 1, wish.targets)  # in a round
        fewer = max(min(rounds, 25), rounds * 3 // trees) if trees > 3 else rounds
        if wish.classify:
            return ensemble.HistGradientBoostingClassifier(max_iter=fewer, **shared)
        quantile = {"quantile": 0.9} if wish.loss == "quantile" else {}
        return ensemble.HistGradientBoostingRegressor(
            max_iter=fewer, loss=wish.loss, **quantile, **shared
        )

    return make


def _tree(**options: Any) -> Callable[[Wish], Any]:
    def make(wish: Wish) -> Any:
        kind = tree.DecisionTreeClassifier if wish.classify else tree.DecisionTreeRegressor
        return kind(random_state=SEED, **options)

    return make


def _nearest(number: int, **options: Any) -> Callable[[Wish], Any]:
    def make(wish: Wish) -> Any:
        kind = neighbors.KNeighborsClassifier if wish.classify else neighbors.KNeighborsRegressor
        return kind(n_neighbors=number, **options)

    return make
