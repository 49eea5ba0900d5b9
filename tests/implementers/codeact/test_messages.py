"""What the model is sent. `UPDATE_GOLDEN=1 pytest` writes the golden files anew."""

from __future__ import annotations

import json
import os
import re
import time
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace

from mle_ideator.context import size
from mle_ideator.implementers.codeact import CodeActImplementer
from mle_ideator.implementers.codeact.head import head, version
from mle_ideator.implementers.codeact.tail import duration, solution_step, tail
from mle_ideator.implementers.codeact.written import as_calls, as_tags
from mle_ideator.types import Execute, Observation, Solution, Step

GOLDEN = Path(__file__).parents[2] / "golden"


def check(name, text):
    file = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(f"{text}\n", encoding="utf-8")
    assert f"{text}\n" == file.read_text(encoding="utf-8")


def told(messages):
    """A conversation as one text."""
    parts = []
    for message in messages:
        calls = [f"{call.id} {call.name} {call.arguments}" for call in message.calls]
        who = f"{message.role} {message.call_id}".strip()
        parts.append("\n".join([f"<<< {who} >>>", message.text, *calls]))
    return "\n\n".join(parts)


@pytest.mark.parametrize("form", ["tags", "tools"])
def test_the_rules_are_as_recorded(situation, form):
    system, _ = head(situation, tools=form == "tools")
    check(f"codeact_system_{form}.md", system.text)


def test_the_task_is_as_recorded(situation):
    _, task = head(situation, tools=False)
    check("codeact_task.md", task.text)


@pytest.mark.parametrize(("form", "written"), [("tags", as_tags), ("tools", as_calls)])
def test_the_steps_and_what_is_left_are_as_recorded(situation, form, written):
    steps = [message for step in situation.trajectory for message in written(step)]
    check(f"codeact_steps_{form}.md", told([*steps, tail(situation)]))


def test_a_task_says_only_what_is_so(situation):
    old = replace(situation.sandbox, libraries={"pandas": "2.3.3"}, gpus=(), network=True)
    task = replace(situation.task, public_feedback=False, description="# Its own title\n\nText.")
    text = head(replace(situation, sandbox=old, task=task), tools=False)[1].text
    assert text.startswith("# Its own title\n\nText.")
    assert "Newer than you may know" not in text
    assert "no GPU; a network" in text
    assert "public half. It is a check" not in text
    assert "rmse, **lower is better**" in text


def test_versions():
    assert version("3.1.0rc1") == (3, 1, 0)
    assert version(None) == version("unknown") == ()
    assert version("10.0") > version("9.9")
    assert duration(119.9) == "119 s"
    assert duration(120) == "2 min"


# -------------------------------------------------------------------------- the solution


@pytest.fixture
def agent(tmp_path):
    def made(**options):
        file = tmp_path / "replies.yaml"
        file.write_text("['<finish/>']")
        return CodeActImplementer(f"scripted:{file}", CodeActImplementer.Options(**options))

    return made


def solution_is_shown(messages):
    return any("solution.py as it stands now" in message.text for message in messages)


@pytest.mark.parametrize("tools", [False, True])
def test_a_solution_that_a_step_shows_is_not_shown_twice(agent, situation, tools):
    messages = agent(tools=tools).messages(situation)
    assert solution_step(situation) == 1
    assert not solution_is_shown(messages)
    assert "solution.py is now as step 1 wrote it." in messages[-1].text


def test_a_solution_that_no_step_shows_is_shown_whole(agent, situation):
    code = 'print("```")\nprint("~~~~")\n'
    *_, shown, last = agent().messages(replace(situation, code=code))
    assert f"\n````python\n{code}````" in shown.text
    assert "solution.py is now as shown above." in last.text


@pytest.mark.parametrize("code", [None, "", " \n"])
def test_no_solution_is_no_block(agent, situation, code):
    messages = agent().messages(replace(situation, code=code))
    assert not solution_is_shown(messages)
    assert "There is no solution.py" in messages[-1].text


def test_a_solution_whose_step_is_condensed_is_shown_whole(agent, situation):
    long = Observation(text="word " * 3000, status="ok")
    steps = tuple(
        Step(number=n, action=Execute("python", f"x = {n}"), observation=long) for n in range(7, 30)
    )
    late = replace(situation, trajectory=situation.trajectory + steps)
    messages = agent(context_tokens=20_000).messages(late)
    assert solution_is_shown(messages)


# ---------------------------------------------------------------------- the best solution

WORSE = "print('Validation score: 0.75')\n"


@pytest.fixture
def overwritten(situation):
    """The best solution was written long ago, and another one stands in its place."""

    def made(best, code, cells=23):
        writes = f"cat > solution.py <<'EOF'\n{best}EOF\npython solution.py"
        first = replace(situation.trajectory[0], action=Execute("bash", writes))
        long = Observation(text="word " * 3000, status="ok")
        cell = replace(situation.trajectory[-1], observation=long)
        more = tuple(replace(cell, number=n) for n in range(2, 2 + cells))
        return replace(
            situation,
            trajectory=(first, *more),
            solutions=(replace(situation.solutions[0], code=best),),
            code=code,
        )

    return made


LINES = [f"x{n} = {n}\n" for n in range(200)]


@pytest.mark.parametrize("tools", [False, True])
def test_a_best_solution_that_is_nowhere_else_is_told_last(agent, overwritten, tools):
    best = "".join(LINES)
    code = best.replace("x7 = 7", "x7 = 8")
    *before, last = agent(context_tokens=20_000, tools=tools).messages(overwritten(best, code))
    assert "Going back to the best one, #1, would change it so:" in last.text
    assert "```diff\n@@ -7,3 +7,3 @@\n x6 = 6\n-x7 = 8\n+x7 = 7\n x8 = 8\n```" in last.text
    assert last.text.endswith("What is your next action?")
    assert not any("best one" in message.text for message in before)


@pytest.mark.parametrize("code", [WORSE, None, ""])
def test_a_best_solution_that_is_shorter_than_the_way_to_it_is_told_whole(agent, overwritten, code):
    best = "print('Validation score: 0.5')\n"
    last = agent(context_tokens=20_000).messages(overwritten(best, code))[-1]
    assert f"The best one, #1, was:\n\n```python\n{best}```" in last.text


@pytest.mark.parametrize("tools", [False, True])
def test_a_best_solution_that_a_step_shows_whole_is_not_told_again(agent, overwritten, tools):
    best = "print('Validation score: 0.5')\n"
    for cells, shown in ((2, True), (23, False)):
        late = overwritten(best, WORSE, cells)
        last = agent(context_tokens=20_000, tools=tools).messages(late)[-1]
        assert ("The best one, #1, is as step 1 wrote it." in last.text) == shown
        assert (best in last.text) != shown


def test_the_best_solution_as_it_stands_is_not_told_twice(agent, overwritten):
    best = "print('Validation score: 0.5')\n"
    last = agent(context_tokens=20_000).messages(overwritten(best, best.strip()))[-1]
    assert "best one" not in last.text


@pytest.mark.parametrize("tools", [False, True])
def test_a_best_solution_is_told_within_the_budget_and_in_a_moment(agent, overwritten, tools):
    best = "".join(f"# {n * n}\n" for n in range(100_000))
    late = overwritten(best, "\n".join(LINES), 3)
    one = agent(context_tokens=8000, tools=tools)
    began = time.monotonic()
    messages = one.messages(late)
    assert size(messages) <= one.budget
    assert time.monotonic() - began < 5
    assert "characters left out" in messages[-1].text
    assert "The best one, #1, was:" in messages[-1].text


def test_what_was_sent_stays_the_same_while_the_best_solution_is_another(agent, overwritten):
    late = overwritten("".join(LINES), WORSE, 30)
    one, changed = agent(context_tokens=20_000), 0
    for count in range(1, 30):
        before, after = (
            one.messages(replace(late, trajectory=late.trajectory[:n])) for n in (count, count + 1)
        )
        stable = [m.text for m in before[:-1] if "solution.py as it stands" not in m.text]
        changed += [m.text for m in after][: len(stable)] != stable
    assert 0 < changed < 8


# -------------------------------------------------------------------------------- the rest


def test_waiting_fits_into_a_cell(situation):
    for seconds in (90.0, 3.0, 0.5):
        left = replace(situation.remaining, step_seconds=seconds)
        (wait,) = re.findall(
            r"wait for a job (\d+) s", tail(replace(situation, remaining=left)).text
        )
        assert 1 <= int(wait) < max(seconds, 2)


def test_the_latest_solutions_and_the_best_are_listed(situation):
    one = situation.solutions[0]
    many = tuple(replace(one, number=n, step=n) for n in range(1, 31))
    text = tail(replace(situation, solutions=many, best=3)).text
    listed = [int(n) for n in re.findall(r"#(\d+) \(step", text)]
    assert listed == [*range(19, 31), 3]
    assert "17 earlier ones" in text
    text = tail(replace(situation, solutions=many, best=30)).text
    assert "18 earlier ones" not in text.replace("18 earlier ones", "", 1)
    assert text.count("#30 ") == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"best": None, "solutions": ()}, "No solution was accepted yet."),
        ({"trajectory": ()}, "Left: 14 steps, 8 help requests, 45 min"),
    ],
)
def test_what_is_left_and_reached(situation, changes, words):
    assert words in tail(replace(situation, **changes)).text


def test_a_plateau_is_told_until_help_was_sought(situation):
    cell = situation.trajectory[-1]
    first = situation.trajectory[0]
    stalled = (first, *(replace(cell, number=n) for n in range(2, 7)))
    assert (
        "No better solution in the last 5 steps"
        in tail(replace(situation, trajectory=stalled)).text
    )
    assert "No better solution" not in tail(situation).text
    nothing = replace(situation, trajectory=stalled[1:], best=None, solutions=())
    assert "No accepted solution in the last 5 steps" in tail(nothing).text
    last = replace(situation.remaining, steps=1)
    text = tail(replace(situation, trajectory=stalled, remaining=last)).text
    assert "Left: 1 step," in text
    assert "This is the last step." in text


def test_what_was_sent_stays_the_same_from_step_to_step(agent, situation):
    one = agent()
    sent = [
        one.messages(replace(situation, trajectory=situation.trajectory[:count], code=None))
        for count in range(len(situation.trajectory) + 1)
    ]
    for before, after in pairwise(sent):
        assert [m.text for m in after][: len(before) - 1] == [m.text for m in before[:-1]]


def test_ids_of_calls_fit_every_provider_and_answer_each_other(situation):
    messages = [message for step in situation.trajectory for message in as_calls(step)]
    calls = [call.id for message in messages for call in message.calls]
    assert calls == [message.call_id for message in messages if message.role == "tool"]
    assert all(re.fullmatch(r"[A-Za-z0-9]{9}", call) for call in calls)
    assert all(json.loads(c.arguments) for m in messages for c in m.calls)
    assert all(message.text or message.calls for message in messages)


def test_scores_that_were_not_printed_are_said_to_be_so(situation):
    unscored = Solution(
        number=1,
        step=1,
        code="",
        scores=replace(situation.solutions[0].scores, validation=None),
        digest="",
    )
    assert (
        "validation not printed, public 0.625"
        in tail(replace(situation, solutions=(unscored,))).text
    )
