"""What a foreign agent tells becomes the help state that ideators know."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from mle_ideator.errors import UsageError
from mle_ideator.ideators.mcp_server.arguments import read_arguments
from mle_ideator.ideators.mcp_server.states import ASSUMED, help_state
from mle_ideator.ideators.offline import OfflineIdeator
from mle_ideator.types import HelpState, SeekHelp

TOLD: dict[str, Any] = {
    "problem": "The score stalls.",
    "attempts": "Two models.",
    "goal": "A better score.",
    "task": "# House prices\n\nPredict y from x1..x9.",
    "metric": "rmse",
    "higher_is_better": False,
    "train_rows": 5000,
}
HISTORY = [
    {"what": "ridge regression", "score": 0.9, "code": "Ridge()"},
    {"what": "a network that diverged"},
    {"what": "ratios of the columns", "score": 0.7, "code": "b", "idea": "Add ratios."},
    {"what": "deeper trees", "score": 0.8},
]


def state_of(**told: Any) -> HelpState:
    return help_state(read_arguments({**TOLD, **told}))


def test_the_request_and_the_task_are_the_agents_words():
    state = state_of(test_rows=200, target="price")
    task = state.situation.task
    assert (state.request.problem, state.request.goal) == (TOLD["problem"], TOLD["goal"])
    assert task.title == "House prices"
    assert task.description == TOLD["task"]
    assert task.rows == (5000, 200)
    assert task.targets == ("price",)
    assert not task.metric.higher_is_better


def test_entry_k_of_the_history_is_solution_k():
    situation = state_of(history=HISTORY).situation
    assert [s.number for s in situation.solutions] == [1, 3, 4]
    assert situation.best == 3
    for solution in situation.solutions:
        step = situation.trajectory[solution.step - 1]
        assert step.solution == solution.number
        assert step.thought == HISTORY[solution.number - 1]["what"]
    assert [step.number for step in situation.trajectory] == list(range(1, 6))


@pytest.mark.parametrize(("higher", "best"), [(True, 1), (False, 3)])
def test_the_best_is_the_best_in_the_metrics_direction(higher, best):
    assert state_of(history=HISTORY, higher_is_better=higher).situation.best == best


def test_an_earlier_idea_is_a_help_request_before_its_attempt():
    trajectory = state_of(history=HISTORY).situation.trajectory
    asked = next(step for step in trajectory if isinstance(step.action, SeekHelp))
    assert asked.idea.action == "Add ratios."
    assert trajectory[asked.number].solution == 3


def test_current_code_and_last_attempt_stand_in_for_each_other():
    assert state_of(history=HISTORY[:1]).situation.code == "Ridge()"
    given = state_of(history=HISTORY, code="now").situation
    assert given.code == "now"
    assert given.solutions[-1].code == "now"
    other = state_of(history=HISTORY[:1], code="now").situation
    assert (other.code, other.solutions[-1].code) == ("now", "Ridge()")
    assert state_of().situation.code is None


def test_the_latest_output_is_the_last_step():
    trajectory = state_of(history=HISTORY, log="Traceback (most recent call last):\nX").situation
    last = trajectory.trajectory[-1].observation
    assert last.status == "error"
    assert last.text.endswith("X")
    assert state_of(log="fine").situation.trajectory[-1].observation.status == "ok"


def test_the_sandbox_is_what_was_told_or_what_is_assumed():
    told = state_of(
        libraries=["pandas==3.0.1", "scikit-learn 1.8", "torch"], cores=16, minutes_left=2
    ).situation
    assert told.sandbox.libraries == {"pandas": "3.0.1", "scikit-learn": "1.8", "torch": ""}
    assert told.sandbox.cores == 16
    assert told.remaining.seconds == 120
    assert state_of().situation.sandbox.cores == ASSUMED.cores


@pytest.mark.parametrize(
    ("metric", "kind", "prediction"),
    [
        ("rmse", "tabular-regression", "value"),
        ("Root Mean Squared Log Error", "tabular-regression", "value"),
        ("poisson deviance", "tabular-regression", "value"),
        ("macro_f1", "tabular-classification", "label"),
        ("Accuracy", "tabular-classification", "label"),
        ("quadratic weighted kappa", "tabular-classification", "label"),
        ("ROC AUC", "tabular-classification", "probability"),
        ("log_loss", "tabular-classification", "probability"),
        ("QWK", "tabular-classification", "label"),
        ("quadratic_kappa", "tabular-classification", "label"),
        ("mAP@5", "tabular-classification", "label"),
        ("MAPE", "tabular-regression", "value"),
        ("ROC", "tabular-classification", "probability"),
        ("error rate", "tabular-classification", "label"),
        ("mean_IoU", "tabular-classification", "label"),
        ("dice_score", "tabular-classification", "label"),
        ("NDCG@10", "tabular-classification", "label"),
        ("top-5 error", "tabular-classification", "label"),
        ("val_acc", "tabular-classification", "label"),
    ],
)
def test_a_task_type_that_was_not_told_follows_from_the_metric(metric, kind, prediction):
    task = state_of(metric=metric).situation.task
    assert (task.type, task.prediction) == (kind, prediction)


@pytest.mark.parametrize(
    ("metric", "task", "kind"),
    [
        ("score", "Classify sounds.", "tabular-classification"),
        ("penalty", "Detection of frauds", "tabular-classification"),
        ("score", "recognise digits", "tabular-classification"),
        ("score", "Predict y.", "tabular-regression"),
        ("rmse", "Detect the height.", "tabular-regression"),
        ("R^2", "Detect the height.", "tabular-regression"),
    ],
)
def test_where_the_metric_says_nothing_the_tasks_words_do(metric, task, kind):
    assert state_of(metric=metric, task=task).situation.task.type == kind


def test_what_models_write_is_read():
    history = '[{"what": "ridge", "score": "0.5", "code": null}]'
    told = read_arguments(
        {**TOLD, "train_rows": "5000", "higher_is_better": "false", "cores": None}
        | {"history": history, "libraries": '["pandas"]'}
    )
    assert told.history[0].score == 0.5
    assert told.libraries == ("pandas",)
    assert told.higher_is_better is False


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"goal": "\n "}, "goal: it must not be empty."),
        ({"goal": 3}, "goal: Expected `str`, got `int`."),
        ({"histroy": []}, "unknown argument 'histroy'; did you mean 'history'?"),
        ({"history": "none"}, "history: Expected `array`, got `str`."),
        ({"history": [{"wat": "x"}]}, "history[0]: Object contains unknown field `wat`."),
        ({"history": [{"what": "x", "score": "good"}]}, "history[0].score: Expected"),
        ({"history": [{"what": "x", "score": True}]}, "history[0].score: expected a number"),
        ({"history": [{"what": "x", "score": "nan"}]}, "history[0].score: nan is no score"),
        ({"history": [{"what": "x", "score": "inf"}]}, "history[0].score: inf is no score"),
        ({"train_rows": 0}, "train_rows: Expected `int` >= 1."),
        ({"train_rows": True}, "train_rows: expected a number"),
        ({"minutes_left": "nan"}, "minutes_left: Expected `float` > 0.0."),
        ({"higher_is_better": "yes"}, "higher_is_better: Expected `bool`, got `str`."),
        ({"metric": None}, "missing: metric."),
        ({"metric": None, "task": None, "goal": None}, "missing: goal, task, metric."),
    ],
)
def test_what_is_wrong_is_named_in_one_line(wrong, message):
    with pytest.raises(UsageError) as error:
        read_arguments({**TOLD, **wrong})
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


def test_the_state_survives_the_journal():
    state = state_of(history=HISTORY, log="x", libraries=["pandas 3"])
    assert msgspec.json.decode(msgspec.json.encode(state), type=HelpState) == state


async def test_the_offline_ideator_reads_such_states():
    async def idea(**told: Any) -> Any:
        return (await OfflineIdeator().propose(state_of(**told))).idea

    text = {"metric": "accuracy", "higher_is_better": True, "task_type": "text-classification"}
    assert "TF-IDF" in (await idea(**text)).action
    worse = [{"what": "boosting", "score": 0.9}, {"what": "forest", "score": 0.5}]
    higher = {**text, "task_type": "tabular-classification", "history": worse}
    assert (await idea(**higher)).reverts_to == 1 or "solution #1" in (
        await idea(**higher)
    ).analysis
    assert "solution #2" in (await idea(history=worse)).analysis
    given = await idea(history=worse)
    again = await idea(history=[*worse, {"what": "as advised", "score": 0.6, "idea": given.action}])
    assert again.action != given.action
