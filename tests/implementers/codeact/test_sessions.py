"""The CodeAct implementer with recorded replies, in real sessions with real kernels."""

from __future__ import annotations

import asyncio
import math
import re
from pathlib import Path

import msgspec
import pytest
import yaml
from msgspec.structs import replace

from mle_ideator.errors import AgentError, ContextOverflow, OutOfBudget, UsageError
from mle_ideator.ideators.fixed import FixedIdeator
from mle_ideator.ideators.null import NullIdeator
from mle_ideator.implementers.codeact import CodeActImplementer
from mle_ideator.journal import Decided, read_journal
from mle_ideator.limits import Limits
from mle_ideator.messages import Completion
from mle_ideator.prompts import render
from mle_ideator.registry import create
from mle_ideator.types import Execute, Finish, Malformed, SeekHelp, Usage

SCRIPTS = Path(__file__).with_name("scripts")


def scripted(name, **options):
    return create("implementers", f"codeact:scripted:{SCRIPTS / name}.yaml", options)


def ideas():
    return FixedIdeator(str(SCRIPTS / "ideas.yaml"))


async def test_a_good_session(play):
    record = await play(scripted("good"), ideas())
    kinds = [type(step.action) for step in record.steps]
    assert kinds == [Execute, Execute, Execute, SeekHelp, Execute, Finish]
    assert [s.step for s in record.solutions] == [2, 3, 5]
    assert record.bests == (1, 3)
    assert record.final.scores.public.value == 0
    assert record.reproduced
    assert len(record.improved) == 1
    first, solved, fenced, asked, *_ = record.steps
    assert first.thought == "I look at the data first."
    assert "Ignored: finish." in solved.observation.text
    assert fenced.action.language == "python"
    assert asked.action.request.goal == "The right factor."
    assert "restored to solution #1" in asked.observation.text
    assert record.implementer_usage.calls == 6
    assert record.implementer_usage.cost_usd is not None


async def test_an_unreadable_reply_costs_one_step_and_runs_nothing(play):
    replies = yaml.safe_load((SCRIPTS / "malformed.yaml").read_text())
    record = await play(scripted("malformed"), NullIdeator(), limits=Limits(steps=40))
    *bad, look, end = record.steps
    assert len(bad) == len(replies) - 2
    assert [step.number for step in bad if not isinstance(step.action, Malformed)] == []
    for step in bad:
        assert step.observation.text.startswith("[runtime] Nothing was executed: ")
    assert len({step.action.reason for step in bad}) > len(bad) - 5
    assert look.observation.status == "ok"
    assert "exit code" not in look.observation.text
    assert "trace" not in look.observation.text
    assert record.ended.outcome == "finished"
    assert isinstance(end.action, Finish)


async def test_native_tool_calls(play):
    record = await play(scripted("tools", tools=True), ideas())
    look, count, asked, tag, end = record.steps
    assert look.action == Execute("bash", "head -2 input/train.csv")
    assert "42" in count.observation.text
    assert "Ignored: finish." in count.observation.text
    assert asked.action.request.attempts == "one\ntwo"
    assert asked.idea is not None
    assert "by a tag" in tag.observation.text
    assert end.action == Finish("done")


async def test_a_background_job_is_started_watched_waited_for_and_ended(play):
    record = await play(scripted("background"), NullIdeator())
    start, look, wait, again, kill, after, _ = [step.observation for step in record.steps]
    assert "still running in the background" in start.text
    assert "epoch 1" in look.text
    assert "Validation score: 0.0" in wait.text
    assert "Solution #1 accepted: validation 0, public 0" in wait.text
    assert "still running" not in wait.text
    assert "still running" in again.text
    assert "still running" not in kill.text + after.text


@pytest.mark.parametrize("tools", [False, True])
def test_the_commands_for_long_jobs_are_those_that_were_tried(tools):
    prompt = render("codeact/system", tools=tools)
    section = prompt.partition("# Long jobs")[2].partition("# Example")[0]
    commands = re.findall(r"^- [^`]*`(.*)`$", section, re.MULTILINE)
    assert len(commands) == 4
    tried = (SCRIPTS / "background.yaml").read_text()
    for command in (command.replace("SECONDS", "300") for command in commands):
        assert any(command.replace("NUMBER", number) in tried for number in "12"), command


def script(tmp_path, *replies, **more):
    file = tmp_path / "replies.yaml"
    file.write_text(yaml.safe_dump({"replies": list(replies), **more}))
    return f"codeact:scripted:{file}"


OVERFLOW = {"error": "overflow"}


async def test_an_overflow_is_answered_by_a_smaller_request(play, tmp_path, folder_of_run):
    cells = [f"<execute_python>\nprint('x {i}' * 3000)\n</execute_python>" for i in range(4)]
    agent = create(
        "implementers",
        script(tmp_path, *cells, OVERFLOW, OVERFLOW, OVERFLOW, "<finish>so</finish>"),
        {"context_tokens": 20_000},
    )
    sent = Recorded(agent.model)
    agent.model = sent
    record = await play(agent, NullIdeator())
    assert record.ended.outcome == "finished"
    sizes = sent.sizes[-4:]
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == 4
    last = [e for e in read_journal(folder_of_run) if isinstance(e, Decided)][-1]
    assert last.decision.usage.calls == 4
    assert agent.budget == pytest.approx(20_000 * 0.6**3, abs=2)


async def test_sessions_that_overflow_at_once_shrink_once(situation, tmp_path):
    replies = [OVERFLOW] * 3 + ["<finish>so</finish>"]
    agent = create("implementers", script(tmp_path, *replies, latency_s=0.05))
    await asyncio.gather(*(agent.act(situation) for _ in range(3)))
    assert agent.budget == pytest.approx(60_000 * 0.6, abs=2)


async def test_after_three_overflows_the_model_is_at_fault(play, tmp_path):
    agent = create("implementers", script(tmp_path, OVERFLOW))
    with pytest.raises(AgentError, match="overflow"):
        await play(agent, NullIdeator())


class Refusing:
    """A model that takes so much money each time, and then does not answer."""

    name, context_tokens, priced = "refusing", None, True

    def __init__(self, *errors, each_usd=0.25):
        self.errors = list(errors)
        self.used = Usage(calls=1, cost_usd=None, at_most_usd=each_usd)
        self.caps = []

    async def complete(self, messages, options):
        self.caps.append(options.max_cost_usd)
        if not self.errors:
            return Completion(text="<finish/>", finish_reason="stop", usage=self.used)
        error = self.errors.pop(0)
        vars(error)["usage"] = self.used
        raise error


@pytest.fixture
def capped(situation):
    return replace(situation, remaining=replace(situation.remaining, cost_usd=1.0))


async def test_calls_after_an_overflow_share_what_is_left(capped):
    agent = scripted("good")
    agent.model = Refusing(*(ContextOverflow("too long") for _ in range(3)))
    decision = await agent.act(capped)
    assert agent.model.caps == [1.0, 0.75, 0.5, 0.25]
    assert decision.usage.at_most_usd == 1.0
    agent.model = Refusing(*(ContextOverflow("too long") for _ in range(3)), each_usd=0.75)
    await agent.act(capped)
    assert agent.model.caps == [1.0, 0.25, 0.0, 0.0]


@pytest.mark.parametrize(
    "last", [AgentError("gone"), OutOfBudget("no more"), asyncio.CancelledError()]
)
async def test_what_all_tries_used_goes_with_the_error_of_the_last(capped, last):
    agent = scripted("good")
    agent.model = Refusing(ContextOverflow("too long"), ContextOverflow("still"), last)
    with pytest.raises(type(last)) as raised:
        await agent.act(capped)
    assert raised.value.usage == Usage(calls=3, cost_usd=None, at_most_usd=0.75)
    agent.model = Refusing(*(ContextOverflow("too long") for _ in range(4)))
    with pytest.raises(ContextOverflow) as raised:
        await agent.act(capped)
    assert raised.value.usage.at_most_usd == 1.0


async def test_a_small_context_is_kept_within(play, tmp_path):
    cells = [f"<execute_python>\nprint('abc {i} ' * 4000)\n</execute_python>" for i in range(8)]
    spec = script(tmp_path, *cells, "<finish>so</finish>", context_tokens=8000)
    agent = create("implementers", spec)
    sent = agent.model = Recorded(agent.model)
    record = await play(agent, NullIdeator())
    assert record.ended.outcome == "finished"
    assert record.implementer_usage.calls == 9
    assert max(sent.sizes) < 8000


async def test_what_is_asked_for_a_reply(play, tmp_path):
    options = {"temperature": 0.5, "effort": "low", "max_output_tokens": 100, "seed": 3}
    agent = create("implementers", script(tmp_path, "<finish>so</finish>"), options)
    sent = agent.model = Recorded(agent.model)
    await play(agent, NullIdeator(), limits=Limits(cost_usd=0.5))
    (asked,) = sent.options
    assert (asked.temperature, asked.effort, asked.max_tokens, asked.seed) == (0.5, "low", 100, 3)
    assert asked.max_cost_usd == 0.5
    assert "</finish>" in asked.stop
    assert asked.tools == ()


async def test_a_model_that_refuses_tools_is_spoken_to_in_tags(play, tmp_path):
    agent = create(
        "implementers",
        script(tmp_path, "<execute_bash>\nls\n</execute_bash>", "<finish>so"),
        {"tools": True},
    )
    sent = agent.model = Recorded(agent.model, dropped=("tools",))
    record = await play(agent, NullIdeator())
    assert record.ended.outcome == "finished"
    assert [bool(asked.tools) for asked in sent.options] == [True, False]
    assert "<execute_python>" in sent.requests[1][0].text
    assert not any(message.calls for message in sent.requests[1])


class Recorded:
    """A model that keeps what it was asked."""

    def __init__(self, model, dropped=()):
        self.model = model
        self.dropped = dropped
        self.requests, self.options, self.sizes = [], [], []

    def __getattr__(self, name):
        return getattr(self.model, name)

    async def complete(self, messages, options):
        self.requests.append(messages)
        self.options.append(options)
        self.sizes.append(sum(len(message.text) for message in messages) // 4)
        reply = await self.model.complete(messages, options)
        return msgspec.structs.replace(reply, dropped=self.dropped)


def test_options_are_checked():
    with pytest.raises(Exception, match="temperature"):
        scripted("good", temperatur=1)
    with pytest.raises(Exception, match="max_output_tokens"):
        scripted("good", max_output_tokens=0)
    for name, value in (
        *(("temperature", value) for value in (-1, math.nan, math.inf, "nan", "warm")),
        *(("max_output_tokens", 0), ("context_tokens", 2047), ("effort", "all")),
    ):
        with pytest.raises(UsageError, match=rf"^options of implementer .*{name}") as raised:
            scripted("good", **{name: value})
        assert "\n" not in str(raised.value)
    assert scripted("good", tools=True).options == CodeActImplementer.Options(tools=True)


async def test_an_unknown_usage_stays_unknown(play, tmp_path):
    unknown = {"input_tokens": None, "output_tokens": None, "cost_usd": None}
    spec = script(tmp_path, OVERFLOW, {"text": "<finish>so</finish>", "usage": unknown})
    record = await play(create("implementers", spec), NullIdeator())
    assert record.implementer_usage.calls == 2
    assert record.implementer_usage.tokens is None
    assert record.implementer_usage.cost_usd is None
