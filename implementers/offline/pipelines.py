"""The function of a script that fits one model: columns prepared, then the estimator."""

from __future__ import annotations

from dataclasses import dataclass

from mle_ideator.implementers.offline import literals
from mle_ideator.implementers.offline.estimators import TREES
from mle_ideator.implementers.offline.plan import Plan

NUMBERS = 'make_column_selector(dtype_include="number")'
LEVELS = 'make_column_selector(dtype_include="category")'


@dataclass(frozen=True)
class Part:
    """One entry of the column transformer."""

    name: str
    code: str
    """The transformer."""
    columns: str
    """Which columns it takes, as source text."""


def fit_function(plan: Plan, family: str) -> str:
    """`def fit_<family>(X, y, seed, **parameters)`, which returns a fitted pipeline."""
    lines = []
    if plan.has("image_shifts") and plan.image:
        lines.append("X, y = with_shifts(X, y, SHAPE)")
    sample = plan.sample(family)
    if sample is not None:
        lines.append(f"X, y = sampled(X, y, {sample}, seed)")
    parts = _parts(plan, family)
    for part in parts:
        lines += literals.assignment(part.name, part.code)
    lines.append("columns = ColumnTransformer([")
    lines += [f'    ("{part.name}", {part.name}, {part.columns}),' for part in parts]
    lines.append("])")
    lines += literals.assignment("model", plan.estimator(family).code)
    lines += ['pipeline = Pipeline([("columns", columns), ("model", model)])',
              "return pipeline.set_params(**parameters).fit(X, y)"]  # fmt: skip
    arguments = "X: pd.DataFrame, y: np.ndarray, seed: int, **parameters: Any"
    return "\n".join(
        [f"def fit_{family}({arguments}) -> Pipeline:",
         '    """The columns as the model needs them, and the model, both fitted to these rows."""',
         *(f"    {line}" for line in lines)]
    )  # fmt: skip


def _parts(plan: Plan, family: str) -> list[Part]:
    found = [Part("numbers", _numbers(plan, family), NUMBERS)]
    if plan.shape.columns("category") or plan.has("join_tables"):
        found.append(Part("levels", _levels(plan, family), LEVELS))
        if plan.has("target_encoding"):
            found.append(Part("level_targets", "LevelTargets(seed)", LEVELS))
    for number in range(len(plan.texts)):
        for kind, vectorizer in _vectorizers(plan):
            name = kind if len(plan.texts) == 1 else f"{kind}_{number + 1}"
            found.append(Part(name, _text(plan, family, vectorizer), f"TEXTS[{number}]"))
    return found


def _numbers(plan: Plan, family: str) -> str:
    steps = []
    if plan.has("image_gradients") and plan.image:
        steps.append('FunctionTransformer(oriented_gradients, kw_args={"shape": SHAPE})')
    components = plan.components(family)
    indicator = ", add_indicator=True" if plan.has("impute_missing") else ""
    if family not in TREES or components or indicator:
        if not plan.image:
            steps.append(f'SimpleImputer(strategy="median", keep_empty_features=True{indicator})')
        if not plan.image and (family not in TREES or components):
            steps.append("StandardScaler()")
    if components:
        steps.append(f"PCA({components}, random_state=seed)")
    if not steps:
        return '"passthrough"'
    return steps[0] if len(steps) == 1 else f"make_pipeline({', '.join(steps)})"


def _levels(plan: Plan, family: str) -> str:
    if family in TREES:
        unknown = 'handle_unknown="use_encoded_value", unknown_value=-1'
        return f"OrdinalEncoder({unknown})"
    most = 200 if family == "linear" else 30
    known = f'handle_unknown="infrequent_if_exist", min_frequency=3, max_categories={most}'
    return f"OneHotEncoder({known}{', sparse_output=False' if family != 'linear' else ''})"


def _vectorizers(plan: Plan) -> list[tuple[str, str]]:
    least = 2 if plan.shape.profile.rows >= 500 else 1
    found = []
    if plan.has("text_words") or not plan.has("text_characters"):
        words = f"ngram_range=(1, 2), min_df={least}, max_features=30000"
        found.append(("words", f"TfidfVectorizer({words}, sublinear_tf=True)"))
    if plan.has("text_characters"):
        letters = f'analyzer="char_wb", ngram_range=(1, 4), min_df={least}, max_features=30000'
        found.append(("letters", f"TfidfVectorizer({letters}, sublinear_tf=True)"))
    return found


def _text(plan: Plan, family: str, vectorizer: str) -> str:
    """Sparse for linear models, reduced to components for all others or where asked for."""
    if family == "linear" and not plan.has("text_svd"):
        return vectorizer
    count = max(min(60, plan.fit_rows // 10), 2)
    return f"make_pipeline({vectorizer}, TextComponents({count}, random_state=seed))"
