"""Writes `solution.py` for a recipe: constants, features, models, main."""

from __future__ import annotations

import re

from mle_ideator.implementers.offline import literals
from mle_ideator.implementers.offline.estimators import IMPORTS
from mle_ideator.implementers.offline.pipelines import fit_function
from mle_ideator.implementers.offline.plan import Plan
from mle_ideator.implementers.offline.shape import Shape
from mle_ideator.implementers.offline.source import assemble
from mle_ideator.operations import OPERATIONS
from mle_ideator.recipes import Recipe

MODELS = {
    "linear": "a regularised linear model",
    "forest": "a random forest",
    "boosting": "gradient boosting",
    "neighbours": "nearest neighbours",
    "kernel": "a kernel machine",
    "network": "a small neural network",
}


def solution_code(recipe: Recipe, shape: Shape) -> str:
    """The whole script. The same recipe and shape make the same text."""
    plan = Plan(recipe, shape)
    parts = [_features(plan), *(fit_function(plan, family) for family in plan.families),
             _decide(plan), _gain(plan), _main(plan)]  # fmt: skip
    body = "\n\n\n".join(part for part in parts if part)
    body += '\n\n\nif __name__ == "__main__":\n    main()\n'
    code = f"{_docstring(plan)}\n\n{assemble(body, _constants(plan), IMPORTS)}"
    long = any(len(line) > literals.WIDTH for line in [recipe.line(), *code.splitlines()])
    return "\n".join([recipe.line(), *["# ruff: noqa: E501"] * long, code])


def _docstring(plan: Plan) -> str:
    name = re.sub(r"[^\w -]", " ", plan.shape.task.id)
    models = " and ".join(MODELS[family] for family in plan.families)
    lines = [f'"""A solution of the task {name}: {models}.', ""]
    lines += [f"- {OPERATIONS[operation].action}" for operation in plan.recipe.operations]
    return "\n".join([*lines, '"""'])


def _constants(plan: Plan) -> dict[str, str]:
    """Every constant that a script may need; `assemble` keeps those that are used."""
    shape, profile = plan.shape, plan.shape.profile
    found = {
        "ID": f"ID = {literals.text(shape.task.id_column)}",
        "TARGETS": literals.listed("TARGETS", shape.targets),
        "PREDICTED": literals.listed("PREDICTED", _predicted(shape)),
        "CLASSES": literals.listed("CLASSES", shape.classes),
        "CATEGORIES": literals.listed("CATEGORIES", shape.columns("category")),
        "TEXTS": literals.listed("TEXTS", shape.columns("text")),
        "DATES": literals.listed("DATES", shape.columns("date")),
        "CONSTANT": literals.listed("CONSTANT", shape.columns("constant")),
        "SIDE_TABLES": literals.listed("SIDE_TABLES", profile.side_tables),
        "TIME": f"TIME = {literals.text(profile.time or '')}",
        "SERIES": literals.listed("SERIES", profile.series),
        "GROUP": f"GROUP = {literals.text(profile.group or '')}",
        "SHAPE": f"SHAPE = {tuple(profile.image or ())}",
        "OUTPUTS": f"OUTPUTS = {shape.outputs}",
        "SEED": f"SEED = {plan.recipe.seed}",
        "JOBS": 'JOBS = int(os.environ.get("OMP_NUM_THREADS", "1"))',
    }
    if plan.has("tune"):
        space = plan.estimator(plan.families[0]).search_space
        found["SPACE"] = literals.mapping("SPACE", space)
    return found


def _predicted(shape: Shape) -> tuple[str, ...]:
    """Prediction columns in the order in which the script computes them."""
    if shape.form in ("values", "marks") and set(shape.targets) == set(shape.task.targets):
        return shape.targets
    return shape.task.targets


def _features(plan: Plan) -> str:
    """The function that makes the features of train and test together."""
    shape = plan.shape
    lines = ["rows = together(train, test)"]
    categories = "CATEGORIES"
    if plan.has("join_tables"):
        lines += ["known = list(rows)", "rows = join_tables(rows, SIDE_TABLES, len(train))",
                  "categories = CATEGORIES + joined_categories(rows, known)"]  # fmt: skip
        categories = "categories"
    lines.append(f"numbers = numeric_columns(rows, {categories} + TEXTS + DATES + CONSTANT)")
    if plan.image:
        lines.append("numbers = numbers / 255")
    if plan.has("clip_outliers"):
        lines.append("numbers = clip_outliers(numbers, len(train))")
    parts = ["numbers"]
    if shape.columns("category") or plan.has("join_tables"):
        lines.append(f"levels = level_columns(rows, {categories})")
        if plan.has("rare_levels"):
            at_least = max(shape.profile.rows // 500, 5)
            lines.append(f"levels = merge_rare_levels(levels, at_least={at_least})")
        parts.append('levels.astype("category")')
        if plan.has("frequency_encoding"):
            parts.append("level_frequencies(levels)")
    lines += _derived(plan, parts)
    if shape.columns("date"):
        parts.append("date_numbers(rows, DATES)")
        if plan.has("date_parts"):
            parts.append("date_parts(rows, DATES)")
    if shape.columns("text"):
        if plan.texts or plan.has("text_statistics"):
            lines.append("texts = text_columns(rows, TEXTS)")
        parts += ["texts"] if plan.texts else []
        parts += ["text_statistics(texts)"] if plan.has("text_statistics") else []
    lines += _past(plan, parts)
    lines += [*_listed("X = one_frame([", parts),
              "return X[: len(train)], X[len(train) :].reset_index(drop=True)"]  # fmt: skip
    return "\n".join(
        ["def build_features(",
         "    train: pd.DataFrame, test: pd.DataFrame, y: np.ndarray",
         ") -> tuple[pd.DataFrame, pd.DataFrame]:",
         '    """The columns that the models see, for train and test."""',
         *(f"    {line}" for line in lines)]
    )  # fmt: skip


def _listed(head: str, parts: list[str]) -> list[str]:
    line = f"{head}{', '.join(parts)}])"
    return [line] if len(line) <= 96 else [head, *(f"    {part}," for part in parts), "])"]


def _derived(plan: Plan, parts: list[str]) -> list[str]:
    """Features made of the strongest numbers."""
    counts = {"interactions": 5, "ratios": 6, "group_aggregates": 4}
    wanted = [name for name in counts if plan.has(name)]
    if not wanted or not (plan.shape.numbers or plan.has("join_tables")):
        return []
    most = max(counts[name] for name in wanted)
    lines = [f"strongest = strongest_columns(numbers, y, {most}, SEED)"]
    calls = {"interactions": "products(numbers[strongest[:5]])",
             "ratios": "ratios(numbers[strongest[:6]])",
             "group_aggregates": "group_aggregates(numbers[strongest[:4]], levels)"}  # fmt: skip
    has_levels = plan.shape.columns("category") or plan.has("join_tables")
    parts += [calls[name] for name in wanted if name != "group_aggregates" or has_levels]
    return lines


def _past(plan: Plan, parts: list[str]) -> list[str]:
    """Features made of the known targets at other times."""
    if not plan.shape.has_past or not plan.has("lag_features", "rolling_features"):
        return []
    near, around = ("neighbour_features", "surrounding_features") if plan.shape.profile.gaps else (
        "lag_features", "rolling_features")  # fmt: skip
    parts += [f"{near}(moments, series, y)"] if plan.has("lag_features") else []
    parts += [f"{around}(moments, series, y)"] if plan.has("rolling_features") else []
    return ["moments = moments_of(pd.concat([train[TIME], test[TIME]]))",
            "series = series_names(rows, SERIES)"]  # fmt: skip


def _decide(plan: Plan) -> str:
    """The function that turns a model's predictions into what the metric wants."""
    shape = plan.shape
    label = shape.task.prediction == "label"
    if shape.form == "marks":
        what, code = "labels", "(p > 0.5).astype(int)" if label else "p"
    elif shape.form in ("binary", "classes"):
        binary = "p[:, 1]" if shape.form == "binary" and len(shape.task.targets) == 1 else "p"
        what, code = ("class codes", "p.argmax(axis=1)") if label else ("probabilities", binary)
    else:
        column = "p[:, 0]" if shape.form == "value" else "p"
        what, code = "values", f"np.expm1({column})" if plan.has("target_log") else column
        floors = {"rmsle": "0", "poisson_deviance": "1e-6", "gamma_deviance": "1e-6"}
        if shape.metric in floors:
            code = f"np.maximum({code}, {floors[shape.metric]})"
    return "\n".join(
        ["def decide(p: np.ndarray) -> np.ndarray:",
         f'    """The {what} that a model\'s predictions stand for."""',
         f"    return {code}"]
    )  # fmt: skip


def _gain(plan: Plan) -> str:
    """The functions by which combinations, searches and thresholds are judged."""
    sign, against = ("", "-") if plan.shape.task.metric.higher_is_better else ("-", "")
    found = []
    if plan.has("tune", "blend"):
        truth = "np.expm1(y)" if plan.has("target_log") else "y"
        found.append(
            "def loss(y: np.ndarray, p: np.ndarray) -> float:\n"
            '    """The metric of predictions, turned so that less is better."""\n'
            f"    return {against}{plan.shape.metric}({truth}, decide(p))"
        )
    if plan.has("tune_threshold"):
        found.append(
            "def gain(y: np.ndarray, answers: np.ndarray) -> float:\n"
            '    """The metric of answers, turned so that more is better."""\n'
            f"    return {sign}{plan.shape.metric}(y, answers)"
        )
    return "\n\n\n".join(found)


def _main(plan: Plan) -> str:
    lines = [*_reading(plan), *_folds(plan), *_predictions(plan), *_post_processing(plan)]
    if {"linear", "network"} & set(plan.families):
        lines.insert(0, 'warnings.filterwarnings("ignore", category=ConvergenceWarning)')
    # Many short parallel steps wait for each other on busy cores, and thread counts change sums.
    lines.insert(0, "threadpool_limits(1)  # for the same numbers on every machine")
    return "\n".join(["def main() -> None:", *(f"    {line}" for line in lines)])


def _reading(plan: Plan) -> list[str]:
    coded = plan.shape.form in ("binary", "classes")
    read = "read_classes()" if coded else "read_values()"
    lines = ["train, test = read_tables()", f"train, y = with_targets(train, {read})"]
    if coded or plan.shape.form == "marks":
        lines.append("y = y.astype(int)")
    if plan.has("target_log"):
        lines.append("y = np.log1p(y)")
    return [*lines, "X, X_test = build_features(train, test, y)"]


def _folds(plan: Plan) -> list[str]:
    if plan.forward:
        moments = "moments_of(pd.concat([train[TIME], test[TIME]]))"
        return [f"folds = forward_folds({moments}, len(train), 2)"]
    if plan.by_group and plan.shape.profile.gaps:
        return [f"folds = gap_folds(moments_of(train[TIME]), {plan.folds}, SEED)"]
    if plan.by_group:
        return [f"folds = group_folds(train[GROUP], {plan.folds})"]
    if plan.shape.form in ("binary", "classes"):
        return [f"folds = stratified_folds(y, {plan.folds}, SEED)"]
    return [f"folds = plain_folds(len(y), {plan.folds}, SEED)"]


def _predictions(plan: Plan) -> list[str]:
    """Validation and test predictions of one model, or of several and then of all together."""
    kinds = {"binary": "classes", "classes": "classes", "marks": "marks"}
    predict = f"predict_{kinds.get(plan.shape.form, 'values')}"
    seeds = "[SEED]" if len(plan.seeds) == 1 else str(plan.seeds)
    rest = f"{predict}, X, y, X_test, folds, {seeds}, refit={plan.forward}"
    fits = [f"fit_{family}" for family in plan.families]
    lines = []
    if plan.has("tune"):
        first = fits[0]
        arguments = f"{first}, {predict}, SPACE, X, y, folds, loss, trials=8, rows=3000, seed=SEED"
        lines += literals.assignment("tuned", f"tuned_parameters({arguments})")
        fits[0] = f"partial({first}, **tuned)"
    bounded = plan.has("target_log", "clip_predictions") and plan.shape.is_value
    if len(fits) == 1:
        lines += literals.assignment("checked, predicted", f"cross_validate({fits[0]}, {rest})")
        lines += ["rows = np.isfinite(checked).all(axis=1)", "y, checked = y[rows], checked[rows]"]
        if bounded:
            pairs = [(name, f"within_range({name}, y)") for name in ("checked", "predicted")]
            lines += [f"{name} = {code}" for name, code in pairs]
        return lines
    lines += [
        f"fits = [{', '.join(fits)}]",
        f"results = [cross_validate(fit, {rest}) for fit in fits]",
        "rows = np.isfinite(results[0][0]).all(axis=1)",
        "y, each_checked = y[rows], [checked[rows] for checked, _ in results]",
        "each_predicted = [predicted for _, predicted in results]",
    ]
    if bounded:
        lines += ["each_checked = [within_range(p, y) for p in each_checked]",
                  "each_predicted = [within_range(p, y) for p in each_predicted]"]  # fmt: skip
    return [*lines, *_combination(plan)]


def _combination(plan: Plan) -> list[str]:
    if plan.has("blend"):
        arguments = "each_checked, each_predicted, partial(loss, y)"
        return [f"checked, predicted = blend({arguments})"]
    kinds = {"binary": "classes", "classes": "classes", "marks": "marks"}
    kind = kinds.get(plan.shape.form, "values")
    return [f"checked, predicted = stack_{kind}(y, each_checked, each_predicted, SEED)"]


def _post_processing(plan: Plan) -> list[str]:
    lines = []
    if plan.has("calibrate"):
        lines.append("checked, predicted = calibrate(y, checked, predicted, SEED)")
    if plan.has("tune_threshold"):
        kind = "marks" if plan.shape.form == "marks" else "labels"
        kind = "ranks" if plan.shape.metric == "qwk" else kind
        lines.append(f"answers, submitted = tuned_{kind}(y, checked, predicted, gain, SEED)")
    else:
        lines.append("answers, submitted = decide(checked), decide(predicted)")
    truth = "np.expm1(y)" if plan.has("target_log") else "y"
    lines.append(f'print(f"Validation score: {{{plan.shape.metric}({truth}, answers):.6f}}")')
    named = plan.shape.task.prediction == "label" and plan.shape.form != "marks"
    lines.append(f"write_submission({'np.array(CLASSES)[submitted]' if named else 'submitted'})")
    return lines
