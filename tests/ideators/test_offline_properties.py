"""Whatever the data and the history: no exception, nothing inapplicable, always a readable idea."""

from __future__ import annotations

import asyncio

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mle_ideator.ideators.offline import OfflineIdeator
from mle_ideator.ideators.random_operation import RandomIdeator
from mle_ideator.operations import OPERATIONS, mentioned
from mle_ideator.recipes import Column, Profile

NAMES = st.text(min_size=1, max_size=12)
FLOATS = st.floats(allow_nan=False, allow_infinity=False, width=32)


@st.composite
def columns(draw: st.DrawFn) -> Column:
    kind = draw(st.sampled_from(["number", "category", "text", "date", "constant"]))
    skew = draw(st.none() | FLOATS) if kind == "number" else None
    levels, missing = draw(st.integers(0, 10**6)), draw(st.floats(0, 1))
    return Column(name=draw(NAMES), kind=kind, levels=levels, missing=missing, skew=skew)


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    listed = tuple(draw(st.lists(columns(), max_size=6)))
    dates = [c.name for c in listed if c.kind == "date"]
    skew, low = draw(st.none() | FLOATS), draw(st.none() | FLOATS)
    return Profile(
        rows=draw(st.integers(0, 10**7)),
        test_rows=100,
        columns=listed,
        targets=(Column(name="y", kind="number", levels=9, missing=0.0, skew=skew, low=low),),
        image=draw(st.none() | st.just((8, 8))),
        time=draw(st.sampled_from([None, *dates])),
        group=draw(st.none() | NAMES),
        side_tables=tuple(draw(st.lists(NAMES, max_size=2))),
    )


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(sorted(OPERATIONS)),
        st.sampled_from(["solved", "unscored", "error", "timeout", "died", "nothing"]),
        FLOATS,
        st.sampled_from(["Refine: go on.", "Revert to #1: back.", "Revert to #99: nowhere."]),
    ),
    max_size=8,
)
TASKS = st.fixed_dictionaries(
    {
        "metric": st.sampled_from(["rmse", "mae", "rmsle", "auc", "macro_f1", "qwk", "log_loss"]),
        "higher": st.booleans(),
        "type": st.sampled_from(["tabular-regression", "text-classification", "image", "forecast"]),
        "prediction": st.sampled_from(["value", "label", "probability"]),
    }
)


def is_applicable(name: str, profile: Profile, prediction: str) -> bool:
    """Said a second time, from the data's side, so that the table is checked against it."""
    kinds = {c.kind for c in profile.columns}
    needs = {
        "join_tables": bool(profile.side_tables),
        "impute_missing": any(c.missing for c in profile.columns if c.kind == "number"),
        "rare_levels": "category" in kinds,
        "clip_outliers": "number" in kinds,
        "target_log": prediction == "value" and (profile.targets[0].low or 0) > -1,
        "date_parts": "date" in kinds,
        "frequency_encoding": "category" in kinds,
        "target_encoding": "category" in kinds,
        "interactions": sum(c.kind == "number" for c in profile.columns) >= 2,
        "ratios": sum(c.kind == "number" for c in profile.columns) >= 2,
        "group_aggregates": {"category", "number"} <= kinds,
        "lag_features": profile.time is not None and prediction == "value",
        "rolling_features": profile.time is not None and prediction == "value",
        "text_words": "text" in kinds,
        "text_characters": "text" in kinds,
        "text_statistics": "text" in kinds,
        "text_svd": "text" in kinds,
        "image_gradients": profile.image is not None,
        "image_shifts": profile.image is not None,
        "model_kernel": profile.rows <= 20_000,
        "class_weights": prediction != "value",
        "loss_of_metric": prediction == "value",
        "validate_by_group": profile.group is not None and profile.time is None,
        "validate_by_time": profile.time is not None,
        "tune_threshold": prediction == "label",
        "calibrate": prediction == "probability",
        "clip_predictions": prediction == "value",
    }
    return needs.get(name, True)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(profile=profiles(), history=EVENTS, about=TASKS, seed=st.integers(0, 2**32))
def test_any_state(profile, history, about, seed, story, task, code):
    told = story(task(**about), profile, seed=seed)
    operations = ["model_linear"]
    for name, event, score, analysis in history:
        known = not analysis.startswith("Revert to #1") or told.solutions
        told.idea(
            f"Use {OPERATIONS[name].action}",
            analysis if known and "99" not in analysis else "Refine: go on.",
        )
        match event:
            case "solved":
                operations = [name if name.startswith("model_") else "model_linear", name]
                told.solved(code(*dict.fromkeys(operations)), score, score)
            case "unscored":
                told.solved("print('foreign')", None)
            case "nothing":
                pass
            case status:
                told.cell("boom", status)
    state = told.state()
    failed = {name for name, event, *_ in history if event in ("error", "timeout", "died")}
    for ideator in (OfflineIdeator(), RandomIdeator()):
        proposal = asyncio.run(ideator.propose(state))
        if proposal.idea is None:
            assert proposal.reason
            continue
        asked = [op.name for op in mentioned(proposal.idea.action)][:1]
        assert asked
        assert is_applicable(asked[0], profile, about["prediction"])
        if isinstance(ideator, OfflineIdeator):
            assert asked[0] not in failed
        numbers = {s.number for s in state.situation.solutions}
        assert proposal.idea.reverts_to in {None, *numbers}
