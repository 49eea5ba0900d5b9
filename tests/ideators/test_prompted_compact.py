"""The help state in few words: what it says, that it fits, and that it is served as any other."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mle_ideator.context import LEAST_BUDGET, size
from mle_ideator.errors import AgentError
from mle_ideator.idea_form import read_idea
from mle_ideator.ideators.prompted.compact import LEAST_COMPACT
from mle_ideator.ideators.prompted.messages import messages_of
from mle_ideator.ideators.prompted.policy import PromptedOptions
from mle_ideator.recipes import Column
from mle_ideator.types import HelpRequest, HelpState
from tests.ideators.conftest import Story, a_profile, a_task, code_of
from tests.ideators.models import Desk, idea_text, ideator_at

GOLDEN = Path(__file__).parents[1] / "golden" / "ideator_compact.md"


@pytest.fixture
def told() -> Story:
    columns = (
        Column(name="size", kind="number", levels=900, missing=0.2, skew=4.0),
        Column(name="age", kind="number", levels=90),
        Column(name="town", kind="category", levels=300),
        Column(name="sold", kind="date", levels=2000),
    )
    told = Story(a_task("mae"), a_profile(*columns, skew=3.0, side_tables=("towns.csv",)))
    told.solved(code_of("model_linear"), 0.9).solved(code_of("model_boosting"), 0.8)
    told.idea("Add products of the most important numeric columns.")
    told.solved(code_of("model_boosting", "interactions"), 0.7)
    told.idea("Project the numeric columns onto their principal components.")
    told.solved(code_of("model_boosting", "interactions", "pca"), 0.95)
    return told.idea("Search the model's main hyper-parameters at random.").cell("boom", "error")


def text_of(state: HelpState, budget: int = 768) -> str:
    return messages_of(state, budget)[-1].text


def test_the_messages_are_as_recorded(told):
    """Rewrite the file with what it prints if a prompt was changed on purpose."""
    said = [
        f"## {message.role}\n\n{message.text}\n"
        for form in ("tags", "json")
        for message in messages_of(told.state(), 768, form)
    ]
    print(text := "\n".join(said))
    assert text == GOLDEN.read_text(encoding="utf-8")


def test_what_decides_is_told(told):
    text = text_of(told.state())
    for part in (
        *("mae lower", "numbers 2", "dates 1", "missing 1", "target skewed", "side tables 1"),
        *("best #3 0.7", "latest #4 0.95", "recipe: interactions, boosting", "left: 5 ideas"),
        "tried: boosting better; interactions better; pca worse; tune failed",
    ):
        assert part in text, part


def test_it_is_the_same_each_time(told):
    assert messages_of(told.state(), 500) == messages_of(told.state(), 500)


def test_only_below_the_least_budget_of_a_whole_state(told):
    assert len(messages_of(told.state(), LEAST_BUDGET)) == 4
    assert [message.role for message in messages_of(told.state(), LEAST_BUDGET - 1)] == [
        "system",
        "user",
    ]
    with pytest.raises(AgentError, match="too few"):
        messages_of(told.state(), LEAST_COMPACT - 1)


def test_code_without_a_recipe_is_told_by_scores_and_request():
    told = Story(a_task("f1", higher=True, description="Which mails are spam?"))
    told.solved("print('mine')", 0.5).solved("print('other')", 0.6)
    text = text_of(told.state())
    assert "scores: #1 0.5, #2 0.6" in text
    assert "about: Which mails are spam?" in text
    assert "asks: The score stalls. / One model. / A better score." in text
    assert "recipe" not in text


def test_an_equal_score_is_neither_better_nor_worse():
    told = Story(a_task(min_delta=0.01), a_profile()).solved(code_of("model_linear"), 0.9)
    told.idea("Use pca.").solved(code_of("model_linear", "pca"), 0.895)
    assert "pca same" in text_of(told.state())


def test_before_any_solution():
    assert "no solution yet" in text_of(Story(a_task()).state())


def huge(number: int) -> HelpState:
    """Each text of a help state as long as nobody writes it."""
    words = "wörd \n" * 40_000
    told = Story(a_task(f"metric {words}", description=words, type=f"type {words}"))
    for each in range(number):
        told.solved(code_of("model_linear", *(("ratios",) if each % 2 else ())), each / 7)
        told.idea(f"Use pca and ratios, {'tune, blend, stack ' * (each % 5)}")
    state = told.state()
    return HelpState(state.situation, HelpRequest(words, words, words))


@pytest.fixture(scope="module")
def huge_states() -> list[HelpState]:
    return [huge(number) for number in (0, 1, 500)]


@pytest.mark.parametrize("budget", [LEAST_COMPACT, 300, 768, LEAST_BUDGET - 1])
@pytest.mark.parametrize("which", range(3))
def test_it_never_passes_its_budget(huge_states, which, budget):
    messages = messages_of(huge_states[which], budget)
    assert size(messages) <= budget
    assert "metric" in messages[1].text
    assert "…" in messages[1].text  # a cut is told


def test_of_many_attempts_the_latest_are_told(huge_states):
    text = text_of(huge_states[2], 1000)
    assert " earlier; " in text
    assert "best #1 0," in text
    assert "latest #500 71.2857" in text


@settings(max_examples=40, deadline=None)
@given(
    st.integers(LEAST_COMPACT, LEAST_BUDGET - 1),
    st.text(max_size=300),
    st.lists(st.tuples(st.text(max_size=80), st.floats(-1e9, 1e9) | st.none()), max_size=12),
)
def test_any_state_fits(budget, text, solutions):
    told = Story(a_task(text or "m", description=text, title=text))
    for code, score in solutions:
        told.solved(code, score).idea(code or "x")
    state = HelpState(told.state().situation, HelpRequest(text, text * 9, text))
    assert size(messages_of(state, budget)) <= budget


async def test_a_model_of_a_small_context_is_asked_in_few_words(told):
    desk = Desk(idea_text())
    desk.context_tokens = 1024
    proposal = await ideator_at(desk).propose(told.state())
    messages, options = desk.asked[0]
    assert proposal.idea is not None
    assert [message.role for message in messages] == ["system", "user"]
    assert (options.max_tokens, size(messages) <= 768) == (256, True)


async def test_few_tokens_can_be_asked_for(told):
    desk = Desk(idea_text())
    await ideator_at(desk, context_tokens=LEAST_COMPACT).propose(told.state())
    assert size(desk.asked[0][0]) <= LEAST_COMPACT
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"context_tokens": LEAST_COMPACT - 1}, PromptedOptions)


def test_what_shows_the_form_is_no_idea(told):
    """A model that repeats it has answered nothing."""
    shown = messages_of(told.state(), 768)[0].text
    assert "<rationale>" in shown
    assert read_idea(shown)[0] is None
