"""How the offline ideator reads a state and what it writes."""

from __future__ import annotations

import time

import pytest

from mle_ideator.ideators.offline import OfflineIdeator
from mle_ideator.ideators.offline.hints import HINTS
from mle_ideator.ideators.offline.ranking import rank
from mle_ideator.ideators.offline.reading import operations_in, read
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
