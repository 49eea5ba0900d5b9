"""Kernel machines read digits well; straightened images, and shifted copies of them, help more."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import ndimage
from sklearn import (
    decomposition,
    ensemble,
    linear_model,
    naive_bayes,
    neighbors,
    pipeline,
    svm,
    tree,
)

from mle_ideator.benchmarks.references import Given, Reference
from mle_ideator.benchmarks.references.encoding import as_given
from mle_ideator.benchmarks.references.models import Model, blended, constants
from mle_ideator.benchmarks.references.tabular import rung

Arrays = tuple[Any, Any]
SIDE = 28
SEEDED = {"random_state": 0}
SHIFTS = ((0, 1), (0, -1), (1, 0), (-1, 0))


def references() -> Iterator[Reference]:
    yield from rung("weak", constants(), pixels)
    yield from rung("weak", _weak(), pixels)
    yield from rung("weak", _weak_on_few(), halved)
    yield from rung("boosting", _tuned(), pixels)
    yield from rung("features", _engineered(), straightened)
    yield from rung("full", _full(), straightened)


def pixels(given: Given) -> Arrays:
    """Brightness from 0 to 1."""
    train, test = as_given(given)
    return train.to_numpy() / 255, test.to_numpy() / 255


def halved(given: Given) -> Arrays:
    """Mean brightness of squares of 4 × 4 pixels."""
    train, test = pixels(given)
    return _squares(train), _squares(test)


def straightened(given: Given) -> Arrays:
    """Images sheared so that strokes stand upright."""
    train, test = pixels(given)
    return _all_upright(train), _all_upright(test)


def _squares(images: Any) -> Any:
    return images.reshape(-1, 7, 4, 7, 4).mean(axis=(2, 4)).reshape(-1, 49)


def _all_upright(images: Any) -> Any:
    return np.stack([_upright(image.reshape(SIDE, SIDE)).ravel() for image in images])


def _upright(image: Any) -> Any:
    rows, columns = np.mgrid[:SIDE, :SIDE]
    weight = image.sum()
    row, column = (rows * image).sum() / weight, (columns * image).sum() / weight
    shear = ((rows - row) * (columns - column) * image).sum() / ((rows - row) ** 2 * image).sum()
    matrix = np.array([[1.0, 0.0], [shear, 1.0]])
    middle = np.array([row, column])
    offset = middle - matrix @ np.array([(SIDE - 1) / 2] * 2)
    return ndimage.affine_transform(image, matrix, offset=offset, order=1)


class Shifted:
    """A classifier that learns from shifted copies of the images, too."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def fit(self, images: Any, y: Any) -> None:
        squares = images.reshape(-1, SIDE, SIDE)
        copies = [ndimage.shift(squares, (0, *by), order=0).reshape(len(y), -1) for by in SHIFTS]
        self.inner.fit(np.vstack([images, *copies]), np.tile(y, 1 + len(copies)))
        self.classes_ = self.inner.classes_

    def predict_proba(self, images: Any) -> Any:
        if hasattr(self.inner, "predict_proba"):
            return self.inner.predict_proba(images)
        margins = self.inner.decision_function(images)
        return np.exp(margins) / np.exp(margins).sum(axis=1, keepdims=True)


def _model(name: str, kind: Callable[..., Any], **options: Any) -> Model:
    return Model(name, lambda _: kind(**options), "as made")


def _weak() -> Iterator[Model]:
    for strength in (0.0001, 0.001, 0.01, 0.1):
        name = f"linear {strength:g}"
        yield _model(name, linear_model.LogisticRegression, C=strength, max_iter=300, tol=1e-2)
    for depth in (1, 2, 3, 4, 5, 6, 8, 10, 12, 16):
        yield _model(f"tree depth {depth}", tree.DecisionTreeClassifier, max_depth=depth, **SEEDED)
    for number in (1, 2, 3, 5, 8, 12, 20, 30, 50, 100):
        yield _model(f"neighbours {number}", neighbors.KNeighborsClassifier, n_neighbors=number)
    for smoothing in (0.001, 0.01, 0.1):
        yield _model(f"naive {smoothing:g}", naive_bayes.GaussianNB, var_smoothing=smoothing)
    for number in (5, 10, 20, 50):
        for most in (4, 8, None):
            yield _model(f"forest {number} depth {most or 'any'}", _forest(number, depth=most))
    yield _model("forest default", _forest(100))
    yield _model("extra trees default", _forest(100, extra=True))
    yield _model("nearest mean", neighbors.NearestCentroid)


def _weak_on_few() -> Iterator[Model]:
    of = "of 7 × 7"
    for number in (1, 3, 10, 30):
        yield _model(
            f"neighbours {number} {of}", neighbors.KNeighborsClassifier, n_neighbors=number
        )
    for strength in (0.01, 1.0, 100.0):
        name = f"linear {strength:g} {of}"
        yield _model(name, linear_model.LogisticRegression, C=strength, max_iter=1000, tol=1e-2)
    for depth in (4, 8, 12):
        name = f"tree depth {depth} {of}"
        yield _model(name, tree.DecisionTreeClassifier, max_depth=depth, **SEEDED)
    for number in (10, 50):
        yield _model(f"forest {number} {of}", _forest(number))
    boosting = ensemble.HistGradientBoostingClassifier
    yield _model(f"boosting {of}", boosting, max_iter=40, early_stopping=False, **SEEDED)


def _tuned() -> list[Model]:
    kernels = [
        _model(f"kernel {c:g}, {gamma:g}", _kernel(c, gamma))
        for c in (3.0, 10.0)
        for gamma in (0.01, 0.02, 0.03)
    ]
    polynomials = [
        _model(f"polynomial {degree}, {coef0:g}", _polynomial(degree, coef0))
        for degree, coef0 in ((2, 0.0), (2, 1.0), (3, 1.0), (4, 1.0))
    ]
    components = [
        _model(f"kernel of {n} components", _components(n, _kernel(5.0, 0.02)))
        for n in (30, 40, 60, 80)
    ]
    near = [
        _model(f"neighbours {n} of 30 components", _components(30, _near(n))) for n in (1, 3, 5)
    ]
    forests = [
        _model("forest 200", _forest(200)),
        _model("extra trees 200", _forest(200, extra=True)),
    ]
    both = blended("kernel and extra trees", kernels[1], forests[1])
    return [*kernels, *polynomials, *components, *near, *forests, both]


def _engineered() -> list[Model]:
    kernels = [
        _model(f"kernel {c:g}, {gamma:g}", _kernel(c, gamma))
        for c, gamma in ((3.0, 0.01), (5.0, 0.02), (5.0, 0.03))
    ]
    polynomials = [
        _model("polynomial 3", _polynomial(3, 1.0)),
        _model("polynomial 5", _polynomial(5, 1.0)),
    ]
    few = [
        _model(f"kernel of {n} components", _components(n, _kernel(5.0, 0.02))) for n in (40, 60)
    ]
    near = [_model(f"neighbours {n}", _near(n)) for n in (1, 3)]
    trees = _model("extra trees 200", _forest(200, extra=True))
    return [*kernels, *polynomials, *few, *near, trees, blended("kernels", *kernels, *few)]


def _full() -> list[Model]:
    def shifted(name: str, make: Callable[[], Any]) -> Model:
        return _model(f"shifted {name}", lambda: Shifted(make()))

    kernels = [
        shifted(f"kernel of {n} components, {gamma:g}", _components(n, _kernel(10.0, gamma)))
        for n, gamma in ((40, 0.015), (40, 0.025), (50, 0.02), (60, 0.02), (60, 0.03))
    ]
    polynomials = [
        shifted(f"polynomial {degree} of 60 components", _components(60, _polynomial(degree, 1.0)))
        for degree in (3, 4, 6)
    ]
    near = shifted("neighbours 3", _components(40, _near(3)))
    return [
        *kernels,
        *polynomials,
        blended("kernels", *kernels),
        blended("kernels and polynomials", *kernels, *polynomials),
        blended("kernels, polynomials and neighbours", *kernels, *polynomials, near),
    ]


def _kernel(c: float, gamma: float) -> Callable[[], Any]:
    return lambda: svm.SVC(C=c, gamma=gamma)


def _polynomial(degree: int, coef0: float) -> Callable[[], Any]:
    return lambda: svm.SVC(C=1.0, kernel="poly", degree=degree, coef0=coef0, gamma=0.02)


def _near(number: int) -> Callable[[], Any]:
    return lambda: neighbors.KNeighborsClassifier(n_neighbors=number, weights="distance")


def _components(number: int, make: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: pipeline.make_pipeline(
        decomposition.PCA(number, svd_solver="covariance_eigh"), make()
    )


def _forest(number: int, *, extra: bool = False, depth: int | None = None) -> Callable[[], Any]:
    kind = ensemble.ExtraTreesClassifier if extra else ensemble.RandomForestClassifier
    return lambda: kind(number, max_depth=depth, random_state=0)
