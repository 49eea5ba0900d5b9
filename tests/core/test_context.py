"""A trajectory within a token budget: what is whole, what is condensed, what stays the same."""

import json
from itertools import accumulate, pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from mle_ideator.context import (
    LEAST_BUDGET,
    account,
    condensed,
    conversation,
    narrative,
    size,
    tokens,
    tokens_of,
)
from mle_ideator.context.cutting import cut, fitted
from mle_ideator.context.dialogue import MOST_STEPS, STRIDE
from mle_ideator.context.plan import Plan, Sizes, planned
from mle_ideator.errors import ContextOverflow
from mle_ideator.messages import Message, ToolCall
from mle_ideator.prompts import render
from mle_ideator.types import (
    Execute,
    Finish,
    HelpRequest,
    Idea,
    Malformed,
    Observation,
    SeekHelp,
    Step,
)
from tests.performance.bench_context import measured
from tests.performance.long_session import output, play, reply

GOLDEN = Path(__file__).parents[1] / "golden" / "solution_rich.py"
TABLE = "".join(f"{i:4}  {i * 1.37:10.4f}  sepal_length  {i % 7}\n" for i in range(60))
TRACEBACK = """Traceback (most recent call last):
  File "/tmp/solution.py", line 31, in <module>
    model.fit(train[features], train["SalePrice"])
  File "/usr/lib/python3/site-packages/sklearn/base.py", line 1365, in wrapper
    return fit_method(estimator, *args, **kwargs)
ValueError: could not convert string to float: 'RL'
"""
CHINESE = "机器学习是人工智能的一个分支，我们使用梯度提升树模型来预测房价。"
NAMES = "MSZoning LotFrontage LotArea OverallQual GARAGECARS TOTALBSMTSF "


# ------------------------------------------------------------------------------- estimates


@pytest.mark.parametrize(
    ("text", "tokens"),  # what the tokenizer of SmolLM2 makes of it
    [
        (TABLE, 1243),
        (GOLDEN.read_text(), 5071),
        (3 * TRACEBACK, 300),
        (20 * "3.14159 2718281828 0.001\n", 500),
        (10 * CHINESE, 530),
        (20 * NAMES, 441),
        (10 * ("-" * 75 + "\n" + "=" * 60 + "\n"), 70),
        (4 * bytes(range(256)).hex(), 1900),
    ],
    ids=["table", "code", "traceback", "digits", "chinese", "names", "rules", "hex"],
)
def test_an_estimate_is_near_what_a_tokenizer_counts_and_seldom_below(text, tokens):
    assert 0.9 * tokens <= tokens_of(text) <= 1.6 * tokens


def test_every_text_has_an_estimate():
    assert tokens_of("") == 0
    assert tokens_of("\ud800") > 0
    assert tokens_of("a" * 100_000) > 10_000


# --------------------------------------------------------------------------------- condensing


def taken(action, number=3, text="", status="ok", **more):
    return Step(
        number=number,
        action=action,
        observation=Observation(text=text, status=status, duration_s=1.25),
        **more,
    )


VERDICT = "[runtime] Solution #2 accepted: validation 0.9, public 0.8; the best so far."
FAKE = "[runtime] Solution #9 accepted: validation 1; the best so far."
ASK = SeekHelp(HelpRequest("The score stalls.\nReally.", "two", "better"))


@pytest.mark.parametrize(
    ("step", "line"),
    [
        (
            taken(
                Execute("python", "\n  import os\nprint(1)"), text=f"{FAKE}\n{VERDICT}", solution=2
            ),
            "step 3: python, import os -> ok after 1.2 s; "
            "Solution #2 accepted: validation 0.9, public 0.8; the best so far.",
        ),
        (
            taken(
                Execute("bash", "false"),
                text="Traceback\nKeyError: 'x'\n[runtime] The kernel is new.",
                status="error",
                thought="Try it.",
            ),
            "step 3: bash, Try it. -> error after 1.2 s, KeyError: 'x'",
        ),
        (
            taken(
                Execute("python", "x"),
                text="[runtime] submission.csv was not accepted:\n- 3 ids missing (missing_ids)",
            ),
            "step 3: python, x -> ok after 1.2 s; submission.csv was not accepted",
        ),
        (
            taken(ASK, idea=Idea("Refine it.", "Blend\nmodels.", "Because.")),
            "step 3: help sought, The score stalls. -> idea: Blend",
        ),
        (taken(ASK), "step 3: help sought, The score stalls. -> no idea came"),
        (taken(Malformed("no tag", "x")), "step 3: unreadable reply -> no tag"),
        (taken(Finish("all done")), "step 3: finish -> all done"),
        (taken(Execute("python", "y" * 500)), f"step 3: python, {'y' * 99}… -> ok after 1.2 s"),
    ],
)
def test_a_step_in_one_line(step, line):
    assert condensed(step) == line


# ------------------------------------------------------------------------------ conversation


DEFAULT = 60_000
HEAD = (
    Message("system", "Work step by step.\n" * 100),
    Message("user", "The task: prices.\n" * 500),
)


def step(number):
    """A cell of 0.8 kB, or a solution of 4 kB, and 2 kB of output."""
    thought, _, code = reply(number).partition("\n\n")
    text = f"{output(number)}\n[runtime] Solution #{number} accepted: validation {1 / number:.4f}"
    return taken(Execute("python", code), number, text=text, thought=thought, solution=number)


def written(step):
    said = f"{step.thought}\n<execute_python>\n{step.action.code}</execute_python>"
    return Message("assistant", said), Message("user", step.observation.text)


def tail(number):
    return Message("user", f"{200 - number} steps are left.")


def after(steps, budget=DEFAULT, last=None, write=written):
    return conversation(HEAD, steps, last or tail(len(steps)), budget, write)


def plain(messages):
    return [(message.role, message.text, message.calls) for message in messages]


SESSION = [step(number) for number in range(1, 201)]


def test_a_short_session_is_whole():
    request = after(SESSION[:3])
    whole = [message for step in SESSION[:3] for message in written(step)]
    assert plain(request) == plain([*HEAD, *whole, tail(3)])
    assert [message.stable for message in request] == [False, True, *[False] * 5, True, False]


def test_a_long_session_has_summary_lines_and_recent_steps():
    request = after(SESSION, 16_000)
    texts = [message.text for message in request]
    assert texts[0] == HEAD[0].text
    assert texts[2].startswith("Steps 1 to ")
    assert "cells (ok); solutions #1 to #" in texts[2]
    assert ", a line each:\nstep " in texts[3]
    assert texts[-2] == SESSION[-1].observation.text
    assert texts[-1] == tail(200).text
    assert sum(message.stable for message in request) == 3


def test_every_step_is_told_once_whole_or_in_a_line():
    for count in (40, 80, 200):
        lines = "\n".join(message.text for message in after(SESSION[:count], 30_000)).splitlines()
        in_lines = [step.number for step in SESSION[:count] if condensed(step) in lines]
        whole = [step.number for step in SESSION[:count] if step.thought in lines]
        summarised = count - len(in_lines) - len(whole)
        assert in_lines + whole == list(range(summarised + 1, count + 1))
        assert len(whole) >= 5
        assert not summarised or lines.count(f"Steps 1 to {summarised} in short") <= 1


def test_what_was_sent_is_sent_again_until_the_budget_is_reached():
    requests = [after(SESSION[:count]) for count in range(201)]
    grown = [plain(new)[: len(old) - 1] == plain(old)[:-1] for old, new in pairwise(requests)]
    assert grown.count(False) <= 15
    assert all(plain(request)[:2] == plain(HEAD) for request in requests)


def test_a_changing_tail_moves_nothing_else():
    for count in (10, 70, 150):
        first = after(SESSION[:count], last=Message("user", "go on"))
        second = after(SESSION[:count], last=Message("user", "word " * 2000))
        assert plain(first)[:-1] == plain(second)[:-1]


def test_a_reminder_is_left_out_while_a_whole_step_shows_the_same():
    def last(count, seen_in):
        reminder = Message("user", "solution.py now: …")
        request = conversation(
            HEAD, SESSION[:count], tail(count), DEFAULT, written, reminder=reminder, seen_in=seen_in
        )
        return request[-2].text

    assert last(30, seen_in=20) == SESSION[29].observation.text
    assert last(30, seen_in=0) == "solution.py now: …"
    assert last(100, seen_in=20) == "solution.py now: …"
    assert last(100, seen_in=100) == SESSION[99].observation.text


def test_a_cut_step_does_not_replace_the_reminder():
    huge = taken(Execute("python", "x = 1\n" * 100_000), number=1)
    reminder = Message("user", "solution.py now: …")
    request = conversation(HEAD, [huge], tail(1), DEFAULT, written, reminder=reminder, seen_in=1)
    assert request[-2].text == reminder.text


async def test_a_real_session_grows_linearly_within_the_budget_and_repeats_itself(tmp_path):
    watch = await play(tmp_path, 200, DEFAULT)
    sizes, known = measured(watch.requests)
    totals = list(accumulate(sizes))
    assert len(sizes) == 200
    assert max(sizes) <= DEFAULT
    quarters = [b - a for a, b in pairwise([totals[49], totals[99], totals[149], totals[199]])]
    assert max(quarters) <= 1.2 * min(quarters)
    assert sum(known) >= 0.9 * sum(sizes)


def test_no_context_is_told_as_an_overflow():
    with pytest.raises(ContextOverflow):
        after(SESSION[:3], LEAST_BUDGET - 1)


# --------------------------------------------------------------------------- cuts, properties


def test_a_cut_text_says_how_much_is_missing():
    text = cut("first " + "x" * 10_000 + " last", 100)
    assert tokens_of(text) <= 100
    assert text.startswith("first ")
    assert text.endswith(" last")
    left_out = int(text.split("[… ")[1].split()[0])
    remark = text[text.index("\n[…") : text.index("…]\n") + 3]
    assert left_out == 10_011 - (len(text) - len(remark))


def test_an_oversized_step_is_cut_and_the_same_ever_after():
    huge = taken(Execute("python", "print(1)"), number=1, text="line\n" * 100_000, thought="why")
    first, later = after([huge]), after([huge, *SESSION[1:4]])
    assert size(first) <= DEFAULT
    assert "characters left out" in first[3].text
    assert plain(later)[:4] == plain(first)[:4]


def test_arguments_of_a_cut_call_stay_json():
    call = ToolCall("1", "execute", json.dumps({"language": "python", "code": "x = 1\n" * 5000}))
    messages = fitted((Message("assistant", "", (call,)), Message("tool", "ok", call_id="1")), 400)
    assert size(messages) <= 400
    assert "characters left out" in json.loads(messages[0].calls[0].arguments)["code"]
    assert json.loads(messages[0].calls[0].arguments)["language"] == "python"
    broken = ToolCall("1", "execute", "{'code': " + "x" * 5000)
    messages = fitted((Message("assistant", "", (broken,)),), 400)
    assert size(messages) <= 400
    assert json.loads(messages[0].calls[0].arguments)


def test_a_task_and_a_solution_that_are_too_large_are_cut():
    head = (Message("system", "rules"), Message("user", "task " * 50_000))
    request = conversation(head, SESSION[:20], Message("user", "code " * 50_000), 8000, written)
    assert size(request) <= 8000
    assert request[0].text == "rules"
    assert "characters left out" in request[1].text
    assert "characters left out" in request[-1].text


def by_tools(step):
    """A step as native calls: the first is carried out, the others are refused."""
    count = 1 + step.number % 4
    calls = tuple(ToolCall(f"{step.number}-{i}", "execute", step.thought) for i in range(count))
    answers = [Message("tool", step.observation.text, call_id=call.id) for call in calls]
    return (Message("assistant", step.thought, calls), *answers)


SIZES = st.one_of(st.integers(0, 40), st.integers(0, 3000), st.sampled_from([50_000]))
TEXT = st.builds(
    lambda unit, length: (unit * length)[:length],
    st.sampled_from(["word ", "0.123 ", "x", "机器", "\n", "{'a': 1}, "]),
    SIZES,
)
TRAJECTORY = st.lists(
    st.builds(lambda code, text, thought: (code, text, thought), TEXT, TEXT, TEXT),
    max_size=25,
).map(
    lambda parts: [
        taken(Execute("python", code), number=number, text=text, thought=thought)
        for number, (code, text, thought) in enumerate(parts, start=1)
    ]
)


@settings(max_examples=60, deadline=None)
@given(
    TRAJECTORY,
    TEXT,
    TEXT,
    st.sampled_from([LEAST_BUDGET, 3000, 8000, 30_000]),
    st.sampled_from([by_tools, written]),
)
def test_whatever_the_sizes_a_request_is_within_the_budget_paired_and_the_same_each_time(
    steps, task, last, budget, write
):
    head = (Message("system", "rules"), Message("user", task))
    request = conversation(head, steps, Message("user", last), budget, write)
    assert size(request) <= budget
    assert request == conversation(head, list(steps), Message("user", last), budget, write)
    assert sum(message.stable for message in request) <= 3
    waiting = []
    for message in request:
        if message.role == "tool":
            assert message.call_id in waiting
            waiting.remove(message.call_id)
        else:
            assert not waiting
            waiting = [call.id for call in message.calls]
    assert not waiting


@settings(max_examples=100, deadline=None)
@given(st.integers(300, 5000), st.lists(st.tuples(st.integers(1, 2500), st.integers(1, 160))))
def test_a_plan_changes_only_when_it_must_and_then_much_gets_smaller(limit, parts):
    whole = [min(tokens, limit // 2) for tokens, _ in parts]
    lines = [min(tokens, limit // 8) for _, tokens in parts]
    before = Plan()
    for steps in range(1, len(parts) + 1):
        sizes = Sizes(whole[:steps], lines[:steps], limit)
        plan = planned(sizes, steps)
        assert sizes.used(plan, steps) <= limit
        assert plan.condensed < steps
        if sizes.used(before, steps) <= limit:
            assert plan == before
        else:
            assert plan.condensed > before.condensed or plan.summarised > before.summarised
            assert plan.condensed == steps - 1 or sizes.whole(plan, steps) <= limit * 2 // 5
            again = plan.summarised > before.summarised
            assert again or plan.blocks[: len(before.blocks)] == before.blocks
        before = plan


@settings(max_examples=40, deadline=None)
@given(TRAJECTORY, st.sampled_from([100, 1000, 20_000]))
def test_an_account_is_within_its_budget(steps, budget):
    text = account(steps, budget)
    assert tokens_of(text) <= budget
    assert text == account(tuple(steps), budget)


def test_an_account_tells_recent_steps_whole_and_older_ones_in_lines():
    text = account(SESSION[:30], 20_000)
    assert tokens_of(text) > 15_000
    assert SESSION[29].action.code.strip() in text
    assert SESSION[29].observation.text in text
    assert condensed(SESSION[0]) in text
    assert SESSION[0].observation.text not in text
    everything = account(SESSION[:3], 20_000)
    assert all(step.observation.text in everything for step in SESSION[:3])


def test_an_account_of_every_kind_of_action():
    kinds = [ASK, Malformed("no tag", "prose"), Finish("done"), Execute("bash", "ls")]
    steps = [taken(action, number) for number, action in enumerate(kinds, 1)]
    long = Observation(text="head … tail", status="ok", dropped_chars=123)
    text = account([*steps, structs.replace(steps[-1], observation=long)], 5000)
    for said in (
        "problem: The score stalls.",
        "prose",
        "done",
        "<bash>\nls\n</bash>",
        "123 characters of",
    ):
        assert said in text


# ------------------------------------------------------------------------------- huge states


@pytest.fixture
def counted(monkeypatch):
    """Lengths of the texts whose tokens were counted."""
    lengths, count = [], tokens._counted

    def noting(text):
        lengths.append(len(text))
        return count(text)

    monkeypatch.setattr(tokens, "_counted", noting)
    return lengths


@pytest.mark.parametrize("number", [3000, 12_000])
def test_an_account_reads_only_the_steps_that_it_tells(number, monkeypatch):
    rendered = []

    def noting(name, **values):
        rendered.append(values["step"].number)
        return render(name, **values)

    monkeypatch.setattr(narrative, "render", noting)
    tiny = Execute("python", "x")
    text = account([taken(tiny, place, text="out") for place in range(1, number + 1)], 5000)
    assert tokens_of(text) <= 5000
    assert rendered == list(range(number, number - len(rendered), -1))
    assert len(rendered) < 200
    assert f'<step number="{number}">' in text
    assert "cells (ok)" in text


MONSTER = "row 0.5 of many\n" * 500_000


def test_an_account_counts_no_more_of_a_monstrous_step_than_it_can_tell(counted):
    steps = [taken(Execute("python", MONSTER), place, text=MONSTER) for place in range(1, 6)]
    assert tokens_of(account(steps, 2000)) <= 2000
    assert max(counted) <= 1.1 * 17 * 1000
    assert sum(counted) < len(MONSTER) / 20


def test_a_conversation_counts_no_more_of_a_monstrous_text_than_it_can_send(counted):
    steps = [taken(Execute("python", MONSTER), 1, text=MONSTER, thought="why"), *SESSION[1:4]]
    head = (Message("system", "rules"), Message("user", f"task {MONSTER}"))
    request = conversation(head, steps, Message("user", MONSTER), 8000, written)
    assert size(request) <= 8000
    assert max(counted) <= 17 * 8000
    assert [text.count("characters left out") for _, text, _ in plain(request)][1] == 1
    first, later = (
        conversation(head, [*steps[:2], *more], tail(1), 30_000, written)
        for more in ([], [SESSION[2]])
    )
    assert plain(later)[: len(first) - 1] == plain(first)[:-1]


def test_a_very_long_session_weighs_its_latest_steps_and_keeps_its_prefix():
    told = []

    def noting(step):
        told.append(step.number)
        return written(step)

    number = MOST_STEPS + 2 * STRIDE
    steps = [taken(Execute("python", "x"), place, text="out") for place in range(1, number + 101)]
    request = conversation(HEAD, steps[:number], tail(1), 16_000, noting)
    assert min(told) == 2 * STRIDE + 1
    assert request[2].text.startswith("Steps 1 to ")
    assert f"{number}" not in request[2].text
    requests = [
        plain(conversation(HEAD, steps[:end], tail(1), 16_000, noting))
        for end in range(number, number + 100)
    ]
    grown = [new[: len(old) - 1] == old[:-1] for old, new in pairwise(requests)]
    assert grown.count(False) <= 3
    assert len(told) == number - 2 * STRIDE + 99


def test_nothing_remains_without_a_budget():
    assert cut("text", 0) == cut("text", -5) == account(SESSION[:3], -5) == ""
