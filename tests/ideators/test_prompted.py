"""The prompted ideator: what the model is asked, and what becomes of what it answers."""

from __future__ import annotations

import json
import threading
from difflib import unified_diff
from pathlib import Path

import msgspec
import pytest

from mle_ideator.chat.calls import CallFailed
from mle_ideator.chat.prices import Price
from mle_ideator.context import size
from mle_ideator.errors import AgentError, OutOfBudget, UsageError
from mle_ideator.idea_form import idea_schema
from mle_ideator.ideators.prompted import PromptedIdeator
from mle_ideator.ideators.prompted.drafting import SHOWN_TOKENS
from mle_ideator.ideators.prompted.messages import (
    EXAMPLE,
    MOST_LISTED,
    _ideas,
    _scores,
    messages_of,
)
from mle_ideator.implementers.scripted import ScriptedImplementer
from mle_ideator.messages import Completion, Message
from mle_ideator.recipes import Column
from mle_ideator.registry import create
from mle_ideator.types import HelpState, Idea, Usage
from tests.conftest import writes_and_runs
from tests.ideators.models import SCRIPTS, USED, Desk, cut_off, idea_text, ideator_at

GOLDEN = Path(__file__).parents[1] / "golden" / "ideator_messages.md"
GOOD = idea_text()
GOOD_IDEA = Idea("Refine: go on.", "Use ratios.", "r")


@pytest.fixture
def told(story, task, profile):
    number = Column(name="x", kind="number", levels=99)
    return (
        story(task(), profile(number))
        .solved("x = 1\nprint('```')\n", 0.9, 0.95)
        .idea("Use ratios.")
        .solved("x = 2\n", 1.2, 1.3)
    )


# ------------------------------------------------------------------------- what is asked


def test_the_messages_are_as_recorded(told):
    """Rewrite the file with what it prints if a prompt was changed on purpose."""
    said = [f"## {message.role}\n\n{message.text}\n" for message in messages_of(told.state(), 9000)]
    print(text := "\n".join(said))
    assert text == GOLDEN.read_text(encoding="utf-8")


def test_the_stable_parts_come_first_and_stay_the_same(told):
    before = messages_of(told.state(), 60_000)
    after = messages_of(told.idea("Tune.").solved("x = 3", 0.5).state(), 60_000)
    assert [message.stable for message in before] == [True, True, False, False]
    assert before[:2] == after[:2]
    assert before[2:] != after[2:]


def test_the_whole_state_is_shown(told):
    text = "\n".join(message.text for message in messages_of(told.state(), 60_000))
    state = told.state()
    for part in (
        *(state.situation.task.description, "rmse, lower is better", "x = 2", "-x = 2"),
        *("#1 (step 2): validation 0.9, public 0.95, the best so far", "#2 (step 4): validation"),
        *("Use ratios. -> solution #2", "Left: 40 steps", state.request.problem),
        *("<step number=", "Validation score: 1.2", "2 cores", "no network"),
    ):
        assert part in text


def test_there_is_an_example_where_no_schema_keeps_the_form(told):
    tags, schema = (messages_of(told.state(), 60_000, form) for form in ("tags", "json"))
    assert f"<action>{EXAMPLE.action}</action>" in tags[0].text
    assert EXAMPLE.action not in schema[0].text
    assert "<action>" not in schema[0].text + schema[-1].text
    assert "JSON object" in schema[0].text


def test_code_can_not_close_its_fence(told):
    now = messages_of(told.state(), 60_000)[-1].text
    assert "````diff" in now  # the diff holds three backticks


def test_of_many_solutions_and_ideas_the_best_and_the_latest_are_listed(story, task):
    told = story(task()).solved("x = 0", 0.1)
    for number in range(2 * MOST_LISTED):
        told.idea(f"Idea {number}.").solved(f"x = {number}", 0.9)
    state = told.state()
    solutions = list(_scores(state.situation))
    assert len(solutions) == MOST_LISTED + 2
    assert solutions[0] == f"- {MOST_LISTED + 1} earlier ones"
    assert solutions[1] == "- #1 (step 2): validation 0.1, the best so far"
    assert solutions[-1].startswith(f"- #{2 * MOST_LISTED + 1} ")
    assert len(list(_ideas(state.situation))) == MOST_LISTED
    assert "- #1 (step 2)" in messages_of(state, 60_000)[-1].text


def test_a_huge_solution_is_compared_in_part(story, task, monkeypatch):
    compared = []

    def noting(old, new, **rest):
        compared.extend([old, new])
        return unified_diff(old, new, **rest)

    monkeypatch.setattr("mle_ideator.solutions.unified_diff", noting)
    told = story(task()).solved("x = 1\n" * 500_000, 0.1).solved("y = 1\n" * 500_000, 0.9)
    assert size(messages_of(told.state(), 8000)) <= 8000
    assert [len(lines) for lines in compared] == [2000, 2000]


def test_a_task_of_a_thousand_libraries_leaves_room_for_the_rest(told):
    situation = told.state().situation
    libraries = {f"library-{number}": "1.0" for number in range(50_000)}
    sandbox = msgspec.structs.replace(situation.sandbox, libraries=libraries)
    state = HelpState(msgspec.structs.replace(situation, sandbox=sandbox), told.state().request)
    messages = messages_of(state, 9000)
    assert size(messages) <= 9000
    assert "<step" in messages[2].text


async def test_the_messages_of_several_candidates_are_written_once_and_in_a_thread(
    told, monkeypatch
):
    threads = []

    def noting(*args, **rest):
        threads.append(threading.current_thread())
        return messages_of(*args, **rest)

    monkeypatch.setattr("mle_ideator.ideators.prompted.messages.messages_of", noting)
    await ideator_at(Desk(GOOD), ideas=8).propose(told.state())
    assert len(threads) == 1
    assert threads[0] is not threading.main_thread()


@pytest.mark.parametrize("budget", [2048, 4000, 60_000])
def test_no_request_passes_its_budget(story, task, budget):
    huge = story(task(description="word " * 50_000)).solved("x = 1\n" * 9000, 0.9)
    for number in range(60):
        huge.cell("out " * 2000).idea("Do this. " * 100).solved(f"y = {number}\n" * 3000, 0.8)
    state = msgspec.structs.replace(
        huge.state(), request=msgspec.structs.replace(huge.state().request, problem="p " * 99_999)
    )
    messages = messages_of(state, budget)
    assert size(messages) <= budget
    assert "characters left out" in messages[1].text
    assert "<step" in messages[2].text


def test_a_budget_too_small_for_anything_is_an_error(told):
    with pytest.raises(AgentError, match="too few"):
        messages_of(told.state(), 100)


async def test_the_call_is_made_as_the_options_say(told):
    desk = Desk(GOOD)
    ideator = ideator_at(desk, temperature=0.3, effort="low", max_output_tokens=500)
    await ideator.propose(told.state())
    _, options = desk.asked[0]
    assert (options.temperature, options.effort, options.max_tokens) == (0.3, "low", 500)
    assert options.stop == ("</rationale>",)
    assert options.json_schema is None


async def test_json_sends_the_schema_of_what_can_be_answered(told):
    desk = Desk(json.dumps({"analysis": "Revert to #2: a", "action": "b", "rationale": "c"}))
    proposal = await ideator_at(desk, form="json").propose(told.state())
    assert proposal.idea == Idea("Revert to #2: a", "b", "c")
    assert desk.asked[0][1].json_schema == idea_schema([1, 2])
    assert desk.asked[0][1].stop == ()


async def test_a_small_context_leaves_room_for_the_answer(told):
    desk = Desk(GOOD)
    desk.context_tokens = 8192
    await ideator_at(desk).propose(told.cell("out " * 50_000).state())
    messages, options = desk.asked[0]
    assert options.max_tokens == 2048
    assert size(messages) <= 8192 - 2048


# --------------------------------------------------------------------- what is answered


async def test_a_good_answer(told):
    ideator = create("ideators", f"prompted:scripted:{SCRIPTS / 'good.yaml'}")
    proposal = await ideator.propose(told.state())
    assert proposal.idea
    assert proposal.idea.action.startswith("Replace the model")
    usage = proposal.usage
    assert (usage.calls, usage.input_tokens, usage.cached_tokens) == (1, 1500, 900)
    assert not proposal.malformed


BAD = {
    "prose": ("Try boosting.", "neither the tags"),
    "nothing": ("", "it is empty"),
    "two ideas": (GOOD * 2, "2 times"),
    "an open part": ("<analysis>Refine: a<action>b</action>", "</analysis> is missing"),
    "no opening": (idea_text(analysis="Improve it."), "must start with"),
    "a solution that does not exist": (
        idea_text(analysis="Revert to #7: a"),
        "there is no solution #7; the solutions that exist are #1, #2",
    ),
    "the example": (idea_text(action=EXAMPLE.action), "repeats the example"),
    "nearly the example": (
        idea_text(analysis=EXAMPLE.analysis.replace("step 14", "step 2")),
        "repeats the example",
    ),
    "cut": (cut_off(GOOD), "cut at the limit of 8192 output tokens"),
    "bad JSON": ('{"analysis": "Refine: a"}', "must have the keys"),
}


@pytest.mark.parametrize("case", BAD)
async def test_a_bad_answer_is_repaired_once(told, case):
    answer, says = BAD[case]
    desk = Desk(answer, GOOD)
    proposal = await ideator_at(desk).propose(told.state())
    assert proposal.idea == GOOD_IDEA
    assert proposal.usage.calls == 2
    assert proposal.usage.input_tokens == 200
    (first, _), (second, _) = desk.asked
    assert second[: len(first)] == first
    assert [message.role for message in second[len(first) :]] == ["assistant", "user"]
    assert says in second[-1].text


@pytest.mark.parametrize("case", BAD)
async def test_two_bad_answers_are_no_idea(told, case):
    answer, says = BAD[case]
    desk = Desk("what?", answer)
    proposal = await ideator_at(desk).propose(told.state())
    assert proposal.idea is None
    assert proposal.malformed
    assert says in proposal.reason
    assert len(desk.asked) == proposal.usage.calls == 2


async def test_going_back_where_nothing_exists_is_refused(story, task):
    desk = Desk(idea_text(analysis="Revert to #1: a"))
    proposal = await ideator_at(desk).propose(story(task()).state())
    assert proposal.malformed
    assert "start with Refine" in desk.asked[1][0][-1].text


async def test_a_huge_bad_answer_is_shown_in_part(told):
    desk = Desk("bad " * 100_000, GOOD)
    assert (await ideator_at(desk).propose(told.state())).idea
    shown = desk.asked[1][0][-2]
    assert size([shown]) <= SHOWN_TOKENS + 10
    assert "characters left out" in shown.text


async def test_a_refusal_is_told_and_not_asked_again(told):
    desk = Desk(Completion(text="I can not help.", finish_reason="refused", usage=USED))
    proposal = await ideator_at(desk).propose(told.state())
    assert (proposal.reason, proposal.malformed) == ("the model refused to answer", False)
    assert len(desk.asked) == 1


async def test_missing_usage_stays_unknown(told):
    unknown = Completion(
        text=GOOD, finish_reason="stop", usage=Usage(1, None, None, None, None, None, None)
    )
    usage = (await ideator_at(Desk("bad", unknown)).propose(told.state())).usage
    assert usage.calls == 2
    assert usage.input_tokens is None


# ------------------------------------------------------------------------- what goes wrong


async def test_a_lost_server_is_an_error(told):
    with pytest.raises(AgentError, match="gone"):
        await ideator_at(Desk(CallFailed("broken", "gone"))).propose(told.state())


async def test_a_repair_that_fails_keeps_the_bill(told):
    desk = Desk("bad", CallFailed("broken", "gone"))
    proposal = await ideator_at(desk).propose(told.state())
    assert proposal.malformed
    assert "could not be asked again" in proposal.reason
    assert (proposal.usage.calls, proposal.usage.input_tokens) == (1, 100)


async def test_what_a_broken_stream_may_cost_is_in_the_bill(told):
    desk = Desk("bad", CallFailed("broken", "cut", billed=True))
    desk.price = Price(input=0.0, output=1000.0)
    proposal = await ideator_at(desk).propose(told.state())
    assert proposal.usage.cost_usd is None
    assert proposal.usage.at_most_usd > 0.01


async def test_the_bill_of_an_ideator_that_breaks_goes_with_its_error(told):
    desk = Desk(CallFailed("broken", "cut", billed=True))
    desk.price = Price(input=0.0, output=1000.0)
    with pytest.raises(AgentError) as caught:
        await ideator_at(desk).propose(told.state())
    assert caught.value.usage.at_most_usd > 0


def lengthen(told) -> None:
    for _ in range(80):
        told.cell("out " * 2000)


async def test_an_overflow_shortens_the_request_and_is_remembered(told):
    lengthen(told)
    desk = Desk(CallFailed("overflow", "too long"), CallFailed("overflow", "too long"), GOOD)
    ideator = ideator_at(desk)
    assert (await ideator.propose(told.state())).idea
    sizes = [size(messages) for messages, _ in desk.asked]
    assert 36_000 < sizes[0] <= 60_000
    assert sizes[1] <= 36_000
    assert sizes[2] <= 21_600
    assert [options.max_tokens for _, options in desk.asked] == [8192, 4915, 2949]
    await ideator.propose(told.state())
    assert size(desk.asked[3][0]) <= 21_600


async def test_overflow_ends(told):
    lengthen(told)
    desk = Desk(CallFailed("overflow", "too long"))
    ideator = ideator_at(desk)
    with pytest.raises(AgentError, match="shortened 3 times"):
        await ideator.propose(told.state())
    assert len(desk.asked) == 4
    desk.answers = (GOOD,)
    await ideator.propose(told.state())
    assert size(desk.asked[-1][0]) == size(desk.asked[0][0]), "a broken server teaches nothing"


async def test_a_repair_that_overflows_is_no_idea(told):
    desk = Desk("bad", CallFailed("overflow", "too long"))
    proposal = await ideator_at(desk).propose(told.state())
    assert proposal.malformed
    assert proposal.usage.input_tokens == 100


def with_money(state, cost_usd: float):
    remaining = msgspec.structs.replace(state.situation.remaining, cost_usd=cost_usd)
    situation = msgspec.structs.replace(state.situation, remaining=remaining)
    return msgspec.structs.replace(state, situation=situation)


async def test_the_cap_shrinks_by_what_was_used(told):
    desk = Desk("bad", GOOD)
    await ideator_at(desk).propose(with_money(told.state(), 0.5))
    caps = [options.max_cost_usd for _, options in desk.asked]
    assert caps == [0.5, pytest.approx(0.49)]


async def test_a_call_that_could_pass_the_cap_is_not_made(told):
    desk = Desk(GOOD)
    desk.price = Price(input=0.0, output=1000.0)
    with pytest.raises(OutOfBudget):
        await ideator_at(desk).propose(with_money(told.state(), 1.0))
    assert desk.asked == []


async def test_a_repair_that_could_pass_the_cap_keeps_the_bill(told):
    desk = Desk("bad", GOOD)
    desk.price = Price(input=0.0, output=1000.0)
    proposal = await ideator_at(desk, max_output_tokens=100).propose(with_money(told.state(), 0.1))
    assert proposal.malformed
    assert proposal.usage == msgspec.structs.replace(USED, waited_s=proposal.usage.waited_s)


# ---------------------------------------------------------------------------------- whole


def test_options_are_checked():
    spec = f"scripted:{SCRIPTS / 'good.yaml'}"
    ideator = create("ideators", spec, {"ideas": "3", "choose": "ranker"})
    assert isinstance(ideator, PromptedIdeator)
    assert ideator.options.ideas == 3
    for options in ({"ideas": 0}, {"choose": "dice"}, {"idea": 2}, {"form": "xml"}):
        with pytest.raises(UsageError):
            create("ideators", spec, options)


async def test_a_session_goes_back_as_the_model_says(play, tmp_path: Path, folder_of_run: Path):
    script = [
        {"type": "execute", "language": "python", "code": writes_and_runs(1)},
        {"type": "execute", "language": "python", "code": writes_and_runs(9)},
        {"type": "seek_help", "request": {"problem": "p", "attempts": "a", "goal": "g"}},
    ]
    (tmp_path / "actions.json").write_text(json.dumps(script))
    record = await play(
        ScriptedImplementer(str(tmp_path / "actions.json")),
        create("ideators", f"scripted:{SCRIPTS / 'reverting.yaml'}"),
    )
    assert "solution.py was restored to solution #1" in record.steps[2].observation.text
    assert "float(x) * 1," in (folder_of_run / "workspace" / "solution.py").read_text()


async def test_what_can_not_be_read_is_told_to_the_implementer(play, tmp_path: Path):
    (tmp_path / "bad.yaml").write_text("- I have no idea.")
    help_wanted = {"type": "seek_help", "request": {"problem": "p", "attempts": "a", "goal": "g"}}
    (tmp_path / "actions.json").write_text(json.dumps([help_wanted]))
    record = await play(
        ScriptedImplementer(str(tmp_path / "actions.json")),
        create("ideators", f"scripted:{tmp_path / 'bad.yaml'}"),
    )
    observation = record.steps[0].observation
    assert observation.status == "malformed_idea"
    assert observation.text.startswith("[runtime] No idea came: the answer was no idea: it has")


def test_nothing_of_a_conversation_is_kept():
    assert set(vars(ideator_at(Desk(GOOD)))) == {"model", "options", "_share"}


def test_messages_are_values(told):
    assert all(isinstance(message, Message) for message in messages_of(told.state(), 9000))
