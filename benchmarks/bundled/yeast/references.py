"""All functions at once: lines, neighbours, trees, forests; then kernel machines, and their blends.

A row's values are only compared with each other, so that means of 0 and 1 by least squares do.
"""

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np
from sklearn import cross_decomposition, ensemble, neighbors, tree
from sklearn.dummy import DummyRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.multioutput import MultiOutputRegressor

from mle_ideator.benchmarks.references import Given, Reference, Rung

Models = dict[str, Callable[[], Any]]
Array = np.ndarray


def references() -> Iterator[Reference]:
    rungs: dict[Rung, Models] = {"weak": weak(), "boosting": tuned(), "features": kernels()}
    for rung, models in rungs.items():
        for name, make in models.items():
            yield Reference(f"{rung}/{name}", rung, partial(_mean, (make,)))
    for name, makers in blends().items():
        yield Reference(f"full/{name}", "full", partial(_mean, makers))


def weak() -> Models:
    """59, none of them tuned."""
    near, one, lot = neighbors.KNeighborsRegressor, tree.DecisionTreeRegressor, _forest
    made: Models = {"shares": DummyRegressor}
    made |= {f"linear {a:g}": partial(Ridge, a) for a in (0.01, 0.1, 1, 3, 10, 30, 100, 300)}
    made |= {f"neighbours {k}": partial(near, k) for k in (1, 2, 3, 5, 7, 10, 14, 20)}
    made |= {f"tree depth {d}": partial(one, max_depth=d, random_state=0) for d in range(1, 13)}
    made |= {
        f"tree leaf {n}": partial(one, min_samples_leaf=n, random_state=0)
        for n in (1, 2, 5, 10, 20, 50, 100)
    }
    for extra in (False, True):
        kind = "extra trees" if extra else "forest"
        for number in (5, 10, 20):
            for depth in (4, 8, None):
                name = f"{kind} {number} depth {depth or 'any'}"
                made[name] = partial(lot, number, extra, max_depth=depth, max_features=0.3)
    parts = (1, 2, 4)
    made |= {f"directions {n}": partial(cross_decomposition.PLSRegression, n) for n in parts}
    made |= {f"boosting {n} rounds": partial(_boosting, n) for n in (10, 40)}
    return made


def tuned() -> Models:
    """22 forests, boosters and neighbours with care."""
    made: Models = {}
    for extra in (False, True):
        kind = "extra trees" if extra else "forest"
        for leaf in (1, 2, 4):
            for share in (0.1, 0.3):
                name = f"{kind} leaf {leaf}, {share:.0%} of columns"
                options = {"min_samples_leaf": leaf, "max_features": share}
                made[name] = partial(_forest, 100, extra, **options)
        made[f"{kind} of all columns"] = partial(_forest, 60, extra)
    for depth in (2, 3):
        for share in (0.1, 0.3):
            name = f"boosting depth {depth}, {share:.0%} of columns"
            made[name] = partial(_boosting, 40, max_depth=depth, max_features=share)
    near = partial(neighbors.KNeighborsRegressor, weights="distance")
    made |= {f"neighbours {k} by distance": partial(near, k) for k in (15, 20, 25, 30)}
    return made


def kernels() -> Models:
    """11 kernel machines, by shape, width and penalty."""
    radial = [(2.0, 0.1), (2.0, 0.3), (2.0, 0.5), (1.0, 0.3), (1.0, 0.5), (1.0, 1.0)]
    radial += [(0.5, 0.5), (0.5, 1.0)]
    pointed = [(0.05, 0.3), (0.1, 0.3), (0.2, 0.3)]
    return {
        **{f"radial {g:g}, penalty {a:g}": _kernel("rbf", g, a) for g, a in radial},
        **{f"pointed {g:g}, penalty {a:g}": _kernel("laplacian", g, a) for g, a in pointed},
    }


def blends() -> dict[str, tuple[Callable[[], Any], ...]]:
    """11 means of kernel machines, forests and neighbours."""
    wide, middle = _kernel("rbf", 1.0, 0.5), _kernel("rbf", 2.0, 0.3)
    pointed = _kernel("laplacian", 0.2, 0.3)
    forest = _forest_of_blends
    near = partial(neighbors.KNeighborsRegressor, 20, weights="distance")
    return {
        "radial": (wide, middle),
        "radial and pointed": (middle, pointed),
        "all kernels": (wide, middle, pointed),
        "radial and forest": (middle, forest),
        "pointed and forest": (pointed, forest),
        "two radial and forest": (wide, middle, forest),
        "radial, pointed and forest": (middle, pointed, forest),
        "all kernels and forest": (wide, middle, pointed, forest),
        "all kernels, forest and neighbours": (wide, middle, pointed, forest, near),
        "mostly radial": (middle, middle, middle, pointed, forest),
        "mostly pointed": (middle, pointed, pointed, pointed, forest),
    }


def _forest_of_blends() -> Any:
    return _forest(200, True, min_samples_leaf=2, max_features=0.3)


def _forest(number: int, extra: bool, **options: Any) -> Any:
    kind = ensemble.ExtraTreesRegressor if extra else ensemble.RandomForestRegressor
    return kind(number, random_state=0, **options)


def _boosting(rounds: int, **options: Any) -> Any:
    made = ensemble.HistGradientBoostingRegressor(
        max_iter=rounds, early_stopping=False, random_state=0, **options
    )
    return MultiOutputRegressor(made)


@cache  # one object a kernel, so that blends find what it has put out
def _kernel(shape: str, gamma: float, alpha: float) -> Callable[[], Any]:
    return partial(KernelRidge, alpha=alpha, kernel=shape, gamma=gamma)


def _mean(makers: tuple[Callable[[], Any], ...], given: Given) -> Array:
    return np.asarray(np.mean([_outputs(make, given) for make in makers], axis=0))


@cache  # blends share their members
def _outputs(make: Callable[[], Any], given: Given) -> Array:
    columns = given.features
    known = given.train[list(given.spec.targets)].to_numpy(float)
    model = make().fit(given.train[columns].to_numpy(), known - known.mean(axis=0))
    predicted = model.predict(given.test[columns].to_numpy())
    return np.asarray(predicted + known.mean(axis=0))
