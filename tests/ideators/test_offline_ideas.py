"""How the offline ideator reads a state and what it writes."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from mle_ideator.ideators.offline import OfflineIdeator, codes, history, ideator
from mle_ideator.ideators.offline.codes import operations_in
from mle_ideator.ideators.offline.hints import HINTS
from mle_ideator.ideators.offline.ranking import rank
from mle_ideator.ideators.offline.reading import read
from mle_ideator.ideators.offline.wording import action
from mle_ideator.operations import OPERATIONS, mentioned
from mle_ideator.recipes import Column

NUMBERS = [Column(name=n, kind="number", levels=500, skew=0.0) for n in ("width", "depth", "age")]


@pytest.fixture
def told(story, task, profile, code):
    return story(task(), profile(*NUMBERS)).solved(code("model_linear"), 0.5)


async def propose(told, **rest):
    return await OfflineIdeator().propose(told.state(**rest))


async def test_refines_the_best_solution_with_its_numbers(told):
    idea = (await propose(told)).idea
    assert idea.analysis.startswith("Refine: solution #1 with rmse 0.5")
    assert idea.reverts_to is None
    assert OPERATIONS["model_boosting"].action in idea.action
    assert "5000 rows" in idea.rationale


async def test_reverts_when_the_last_attempt_went_astray(told, code):
    told.idea("Add ratios.").solved(code("model_linear", "ratios"), 0.7)
    idea = (await propose(told)).idea
    assert idea.reverts_to == 1
    assert "#2 scores 0.7, no better than #1 with 0.5" in idea.analysis
    assert "ratios did not help (0.5 → 0.7)" in idea.analysis


async def test_builds_on_what_helped(told, code):
    told.idea("Add ratios.").solved(code("model_linear", "ratios"), 0.4)
    idea = (await propose(told)).idea
    assert idea.reverts_to is None
    assert "solution #2" in idea.analysis
    assert "ratios helped (0.5 → 0.4)" in idea.analysis


async def test_direction_of_the_metric_decides_what_went_astray(story, task, profile, code):
    told = story(task("auc", True), profile(*NUMBERS)).solved(code("model_linear"), 0.5)
    told.idea("Add ratios.").solved(code("model_linear", "ratios"), 0.7)
    assert (await propose(told)).idea.reverts_to is None


async def test_reverts_from_code_that_never_worked(told, code):
    told.idea("Add ratios.").cell("Traceback ...", "error")
    told.code = code("model_linear", "ratios")
    idea = (await propose(told)).idea
    assert idea.reverts_to == 1
    assert "no valid submission" in idea.analysis
    assert "ratios" not in {o.name for o in mentioned(idea.action)}


async def test_does_not_revert_to_where_it_already_is(told, code):
    told.idea("Add ratios.").solved(code("model_linear", "ratios"), 0.7)
    told.idea("Use a random forest.", "Revert to #1: ratios did not help.")
    assert (await propose(told)).idea.reverts_to is None


async def test_says_so_when_nothing_is_left(story, task, profile, code):
    told = story(task(), profile()).solved(code("model_linear"), 0.5)
    ideas = []
    while (idea := (await propose(told)).idea) is not None:
        ideas.append(frozenset(o.name for o in mentioned(idea.action)))
        told.idea(idea.action, idea.analysis).cell("boom", "error")
        assert len(ideas) < 60
    assert len(ideas) >= 5
    assert len(set(ideas)) == len(ideas)
    assert (await propose(told)).reason == "nothing left that I expect to help"


async def test_a_session_of_misses_never_proposes_the_same_on_the_same_base(told, code):
    seen = set()
    for _ in range(25):
        idea = (await propose(told)).idea
        if idea is None:
            break
        names = tuple(o.name for o in mentioned(idea.action))
        assert names not in seen
        seen.add(names)
        told.idea(idea.action, idea.analysis).solved(code("model_linear", *names), 0.9)
    assert len(seen) >= 8


def test_there_is_a_hint_for_every_operation_and_only_for_those():
    assert {hint.operation for hint in HINTS} == set(OPERATIONS)
    assert len(HINTS) == len(OPERATIONS)


@pytest.mark.parametrize("hint", HINTS, ids=lambda hint: hint.operation)
def test_every_action_is_understood_as_what_it_means(hint, told):
    """Whoever reads the action finds the operation first."""
    text = action((hint.operation,), read(told.state()))
    assert OPERATIONS[hint.operation].action in text
    assert mentioned(text)[0].name == hint.operation


@pytest.mark.parametrize("name", ["weekday", "target-encoded", "a\nb", "random forest", "lags"])
async def test_a_column_name_is_never_read_as_an_instruction(name, story, task, profile, code):
    columns = [Column(name=name, kind="number", levels=9), *NUMBERS]
    told = story(task(), profile(*columns)).solved(code("model_boosting"), 0.5)
    best = rank(told.state())[0]
    idea = (await propose(told)).idea
    assert [o.name for o in mentioned(idea.action)] == list(best.operations)
    assert "`width`" in idea.action


FOREIGN = {
    "GradientBoostingRegressor()": {"model_boosting"},
    "model = lightgbm.LGBMClassifier(class_weight='balanced')": {"model_boosting", "class_weights"},
    "make_pipeline(SimpleImputer(), Ridge())": {"model_linear", "impute_missing"},
    "df['y'].shift(7).rolling(3)": {"lag_features", "rolling_features"},
    "TfidfVectorizer(analyzer='char')": {"text_words", "text_characters"},
    "ExtraTreesClassifier()": {"model_forest"},
    "SVC(C=3)": {"model_kernel"},
    "print(1)": set(),
    "": set(),
}


@pytest.mark.parametrize("code", FOREIGN)
def test_reads_code_without_a_recipe(code):
    assert operations_in(code) >= FOREIGN[code]
    assert not FOREIGN[code] or operations_in(code)
    assert operations_in("print(1)") == frozenset()


def test_a_recipe_line_rules_over_what_the_code_names(code):
    assert operations_in(code("model_linear") + "SVC()") == {"model_linear"}


async def test_the_gap_between_said_and_graded_speaks_for_honest_validation(
    story, task, profile, code
):
    def gain(public: float) -> float:
        told = story(task("auc", True), profile(*NUMBERS, group="branch"))
        told.solved(code("model_boosting"), 0.95, public)
        return {c.operations[0]: c.gain for c in rank(told.state())}["validate_by_group"]

    assert gain(0.64) > 1.5 * gain(0.95)


async def test_a_long_history_of_long_foreign_code_is_read_in_no_time(story, task, profile):
    told = story(task(), profile(*NUMBERS))
    for number in range(2):
        told.idea("Add ratios.").solved(f"x = {number}\n" * 200_000 + "knn " * 50_000, 0.5)
    state = told.state()
    start = time.process_time()
    assert (await OfflineIdeator().propose(state)).idea
    assert time.process_time() - start < 10


# ------------------------------------------------------------------------------- long states


@pytest.fixture
def searched(monkeypatch):
    """The codes that were searched for what they use, in order."""
    seen, found = [], codes._found_in

    def noting(code):
        seen.append(code)
        return found(code)

    monkeypatch.setattr(codes, "_found_in", noting)
    return seen


def tied(story, number: int, code: str = "Ridge()"):
    for place in range(number):
        story.idea(f"Add ratios, take {place}.").solved(f"{code}  # {place}\n", 0.5)
    return story.solved(f"{code}  # 0\n", 0.5).state()


@pytest.mark.parametrize("number", [20, 200])
def test_each_code_is_searched_once_however_many_solutions_are_tied(
    number, searched, story, task, profile
):
    reading = read(tied(story(task(), profile(*NUMBERS)), number))
    assert len(searched) == len(set(searched)) == number
    assert len(reading.attempts) == number
    assert reading.known_recipes == {frozenset({"model_linear"})}


def test_of_a_monstrous_history_the_latest_part_is_read(searched, story, task, profile):
    number = history.MOST_ATTEMPTS + 100
    reading = read(tied(story(task(), profile(*NUMBERS)), number, "Ridge()\n" * 2000))
    assert len(reading.attempts) == history.MOST_ATTEMPTS
    assert sum(map(len, searched)) <= codes.MOST_SEARCHED
    assert reading.recipe == {"model_linear"}
    assert searched[0].endswith("# 0\n"), "the base"
    assert searched[1].endswith(f"# {number - 1}\n")


def test_the_rationale_of_a_long_session_stays_short(story, task, profile):
    told = story(task(), profile(*NUMBERS))
    for candidate in rank(tied(told, 300)):
        assert len(candidate.explain()) < 1500


def test_a_long_action_is_read_in_pieces(story, task, monkeypatch):
    lengths = []
    monkeypatch.setattr(
        history, "mentioned", lambda text: lengths.append(len(text)) or mentioned(text)
    )
    told = story(task()).idea("word " * 3000 + "Add ratios of columns. " + "ratios " * 100_000)
    assert read(told.state()).attempts[0].operations == {"ratios"}
    assert max(lengths) <= 2000
    assert sum(lengths) <= 20_000


async def test_the_event_loop_is_free_while_an_idea_is_found(told, monkeypatch):
    entered, leave = threading.Event(), threading.Event()

    def slow(state):
        entered.set()
        assert leave.wait(30)
        return read(state)

    monkeypatch.setattr(ideator, "read", slow)
    proposing = asyncio.create_task(propose(told))
    waiting = asyncio.create_task(propose(told))
    assert await asyncio.to_thread(entered.wait, 30)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    leave.set()
    assert (await proposing).idea


# -------------------------------------------------------------------------------- deep networks


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("image-classification", "import torch\nfrom torch import nn\nmodel = timm.create_model()"),
        ("computer-vision", "print(1)"),
        ("text-classification", "x = 1\nfrom transformers import AutoModel\n"),
        ("Image Classification", "    import keras"),
    ],
)
async def test_a_deep_network_is_not_to_be_replaced_by_a_model_for_tables(kind, code, story, task):
    told = story(task("accuracy", True, type=kind, prediction="label")).solved(code, 0.9)
    names = {name for candidate in rank(told.state()) for name in candidate.operations}
    assert names
    assert not [name for name in names if name.startswith(("model_", "text_", "image_"))]


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("tabular-regression", "import torch"),
        ("image-classification", "from sklearn.svm import SVC\n# no import torch here"),
    ],
)
def test_models_for_tables_stay_where_there_is_a_table(kind, code, story, task):
    told = story(task(type=kind)).solved(code, 0.9)
    assert "model_boosting" in {c.operations[0] for c in rank(told.state())}
