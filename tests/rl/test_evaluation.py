"""Ideators on the same help states: what is asked, with which seeds, and what is gone on with."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

import pytest

from mle_ideator.errors import UsageError
from mle_ideator.ideators.null import NullIdeator
from mle_ideator.ideators.vague import VagueIdeator
from mle_ideator.rl.evaluation import evaluate
from mle_ideator.rl.evaluation.log import log_at
from mle_ideator.rl.evaluation.trying import drawn_seed
from mle_ideator.rl.rollouts import Rollouts
from mle_ideator.types import Idea, Proposal
from tests.rl.made_rollouts import (
    BREAKS,
    MadeRollouts,
    Says,
    card,
    cards,
    lost,
    rubbish,
    saying,
)

GOOD, FAIR = "Use gradient boosting.", "Add ratios as features."


async def test_each_contender_answers_each_state_with_the_same_seeds():
    states = cards(6)
    rollouts = MadeRollouts(states)
    assert isinstance(rollouts, Rollouts)
    one, other = saying(GOOD), saying(FAIR)
    done = await evaluate({"one": one, "other": other}, rollouts, states, ideas=3, seed=5)
    assert len(done.tries) == len(rollouts.jobs) == 6 * 3 * 2
    assert sorted(one.seeds) == sorted(other.seeds)
    assert len(set(one.seeds)) == 18  # another one for each state and place
    for tried in done.tries:
        assert tried.result.seed == drawn_seed(tried.state, 5, tried.place)
    assert [t.state for t in done.of("one")] == [t.state for t in done.of("other")]
    assert done.of("one")[0].usage.output_tokens == 5


async def test_the_result_does_not_depend_on_order_or_parallelism():
    states = cards(20)
    ideators = {"one": saying(GOOD), "other": saying(FAIR)}
    serial = await evaluate(ideators, MadeRollouts(states), states, parallel=1)
    rollouts = MadeRollouts(states[::-1], latency_s=0.001)
    wide = await evaluate(ideators, rollouts, states[::-1], parallel=7)
    assert [t.result for t in wide.tries] == [t.result for t in serial.tries]
    assert rollouts.most_at_once == 7


async def test_broken_is_masked_rubbish_is_invalid_and_declining_is_nothing():
    states = cards(4)
    ideators = {
        "lost": lost(),
        "breaks": saying(BREAKS),
        "rubbish": rubbish(),
        "empty idea": Says(lambda state: Proposal(Idea("Refine: x", " ", "z"))),
        "null": NullIdeator(),
        "no proposal": Says(lambda state: "hello"),
        "a bug": Says(lambda state: 1 / 0),
    }
    done = await evaluate(ideators, MadeRollouts(states), states)
    rewards = {name: {one.result.reward for one in done.of(name)} for name in ideators}
    assert rewards == {
        "lost": {None},
        "breaks": {None},
        "rubbish": {-1.0},
        "empty idea": {-1.0},
        "null": {0.0},
        "no proposal": {None},
        "a bug": {None},
    }
    assert "the server is gone" in done.of("lost")[0].result.detail
    assert "ZeroDivisionError" in done.of("a bug")[0].result.detail
    assert done.of("breaks")[0].masked
    assert done.of("lost")[0].usage.cost_usd is None  # unknown, not nothing


async def test_an_ideator_that_hangs_is_masked():
    class Hangs:
        async def propose(self, state):
            await asyncio.sleep(60)

    states = cards(2)
    done = await evaluate({"hangs": Hangs()}, MadeRollouts(states), states, idea_s=0.05)
    assert all("did not answer within 0.05 s" in one.result.detail for one in done.tries)


async def test_a_wrong_call_ends_the_evaluation_with_its_own_error():
    states = cards(3)

    def refuse(state):
        raise UsageError("the token is no token")

    with pytest.raises(UsageError, match="the token is no token"):
        await evaluate({"x": Says(refuse)}, MadeRollouts(states), states, parallel=3)
    rollouts = MadeRollouts(states)
    for wrong, message in (
        ({"contenders": {}}, "without an ideator"),
        ({"states": []}, "no help state"),
        ({"ideas": 0}, "at least 1"),
        ({"parallel": 0}, "at least 1"),
        ({"states": [*states, states[0]]}, "named twice"),
        ({"states": [card(99)]}, "no help state"),
    ):
        given = {"contenders": {"v": VagueIdeator()}, "states": states} | wrong
        ideators, chosen = given.pop("contenders"), given.pop("states")
        with pytest.raises(UsageError, match=message):
            await evaluate(ideators, rollouts, chosen, **given)


# ----------------------------------------------------------------------------------- the log


async def test_what_is_done_is_not_done_again(tmp_path: Path):
    states, log = cards(5), tmp_path / "new" / "tries.jsonl"
    first = MadeRollouts(states)
    told = []
    done = await evaluate({"one": saying(GOOD)}, first, states, log=log, listener=told.append)
    assert len(told) == 5
    second = MadeRollouts(states)
    again = await evaluate({"one": saying(GOOD)}, second, states, log=log)
    assert again == done
    assert second.jobs == []
    third = MadeRollouts(states)
    more = {"one": saying(GOOD), "two": saying(FAIR)}
    wider = await evaluate(more, third, states, ideas=2, log=log)
    assert len(third.jobs) == 5 + 10  # the second idea of one, both of two
    assert wider.of("one")[0] == done.of("one")[0]


async def test_what_was_masked_is_tried_again(tmp_path: Path):
    states, log = cards(4), tmp_path / "tries.jsonl"
    broken = await evaluate({"one": lost()}, MadeRollouts(states), states, log=log)
    assert all(one.masked for one in broken.tries)
    mended = await evaluate({"one": saying(GOOD)}, MadeRollouts(states), states, log=log)
    assert not any(one.masked for one in mended.tries)
    once_more = MadeRollouts(states)
    assert await evaluate({"one": saying(GOOD)}, once_more, states, log=log) == mended
    assert once_more.jobs == []


async def test_a_line_that_was_being_written_is_done_again(tmp_path: Path):
    states, log = cards(5), tmp_path / "tries.jsonl"
    done = await evaluate({"one": saying(GOOD)}, MadeRollouts(states), states, log=log, parallel=1)
    whole = log.read_bytes()
    for kept in (10, whole.index(b"\n") + 1, len(whole) - 30, len(whole) - 1):
        log.write_bytes(whole[:kept])
        rollouts = MadeRollouts(states)
        again = await evaluate({"one": saying(GOOD)}, rollouts, states, log=log, parallel=1)
        assert [one.result for one in again.tries] == [one.result for one in done.tries]
        assert len(rollouts.jobs) == 5 - max(0, whole[:kept].count(b"\n") - 1)


async def test_a_file_of_something_else_is_refused(tmp_path: Path):
    states, log = cards(2), tmp_path / "tries.jsonl"
    ideators = {"one": saying(GOOD)}
    await evaluate(ideators, MadeRollouts(states), states, log=log, setting="codeact")
    with pytest.raises(UsageError, match="begun with setting 'codeact'"):
        await evaluate(ideators, MadeRollouts(states), states, log=log, setting="offline")
    with pytest.raises(UsageError, match="begun with attempts 1"):
        await evaluate(
            ideators, MadeRollouts(states), states, log=log, setting="codeact", attempts=2
        )
    for text in ("notes", "notes of mine\nmore\n", '{"a": 1}\n'):
        log.write_text(text)
        with pytest.raises(UsageError, match="evaluation"):
            await evaluate(ideators, MadeRollouts(states), states, log=log)
        assert log.read_text() == text


def test_two_processes_do_not_write_to_one_file(tmp_path: Path):
    log = tmp_path / "tries.jsonl"
    with (
        log_at(log, "", 1),
        pytest.raises(UsageError, match="another process"),
        log_at(log, "", 1),
    ):
        pass


_SLOW = """
import asyncio, sys
from pathlib import Path
from mle_ideator.rl.evaluation import evaluate
from tests.rl.made_rollouts import MadeRollouts, cards, saying
states = cards(200)
ideators = {"one": saying("Use gradient boosting.")}
asyncio.run(evaluate(ideators, MadeRollouts(states, 0.05), states, log=Path(sys.argv[1])))
"""


async def test_a_killed_evaluation_goes_on_where_it_was(tmp_path: Path):
    log = tmp_path / "tries.jsonl"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", _SLOW, str(log))
    deadline = time.monotonic() + 60
    while not (log.exists() and log.read_bytes().count(b"\n") > 20):
        assert time.monotonic() < deadline
        assert process.returncode is None
        await asyncio.sleep(0.02)
    process.kill()
    await process.wait()
    written = log.read_bytes().count(b"\n") - 1
    states = cards(200)
    rollouts = MadeRollouts(states)
    done = await evaluate({"one": saying(GOOD)}, rollouts, states, log=log)
    assert len(rollouts.jobs) == 200 - written
    fresh = await evaluate({"one": saying(GOOD)}, MadeRollouts(states), states)
    assert [one.result for one in done.tries] == [one.result for one in fresh.tries]


async def test_a_rollout_that_the_caller_ends_leaves_the_log_readable(tmp_path: Path):
    states, log = cards(50), tmp_path / "tries.jsonl"
    work = asyncio.create_task(
        evaluate({"one": saying(GOOD)}, MadeRollouts(states, 0.01), states, log=log)
    )
    await asyncio.sleep(0.1)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    done = await evaluate({"one": saying(GOOD)}, MadeRollouts(states), states, log=log)
    assert len(done.tries) == 50
