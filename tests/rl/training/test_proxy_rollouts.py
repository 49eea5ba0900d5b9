"""Rollouts that a proxy saves: what is executed, what it counts as, and that nothing is biased."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import fmean, stdev

import pytest

from mle_ideator.config import load_config
from mle_ideator.errors import RuntimeFailure, UsageError
from mle_ideator.rl.rollouts import Rollouts
from mle_ideator.rl.training.proxy import ProxiedRollouts, ProxyConfig, proxied
from mle_ideator.rl.training.proxy.rollouts import audits
from mle_ideator.rl.values import RolloutJob, RolloutResult
from mle_ideator.types import Idea, Proposal
from tests.rl.made_rollouts import BREAKS, MadeRollouts, cards, idea

STATES = cards(5)
HOPELESS, HOPEFUL = "Wait and see", "Use gradient boosting"


@dataclass
class Belief:
    """Gives the hopeless 0.01 and others 0.6."""

    asked: list[tuple[str, Idea]] = field(default_factory=list)

    def chance(self, state: str, idea: Idea) -> float:
        self.asked.append((state, idea))
        return 0.01 if idea.action.startswith(HOPELESS) else 0.6


class Lucky(MadeRollouts):
    """An idea improves if a die says so: 5 % of the hopeless ones, 60 % of the others."""

    async def run(self, job: RolloutJob) -> RolloutResult:
        proposed = job.proposal.idea
        if proposed is None or proposed.action == BREAKS:
            return await super().run(job)
        self.jobs.append(job)
        share = 0.05 if proposed.action.startswith(HOPELESS) else 0.6
        improved = Random(f"{job.state} {proposed.action}").random() < share
        return RolloutResult(
            state=job.state,
            idea=proposed,
            seed=job.seed,
            outcome="improved" if improved else "not_improved",
            reward=float(improved),
            seconds=2.0,
        )


def job(action: str, number: int = 0) -> RolloutJob:
    return RolloutJob(state=STATES[0].id, proposal=Proposal(idea(f"{action} {number}.")))


def around(rollouts: Rollouts, **settings: float) -> ProxiedRollouts:
    given = {"threshold": 0.05, "audit": 0.2, **settings}
    return ProxiedRollouts(rollouts, Belief(), **given)  # type: ignore[arg-type]


async def rewards(rollouts: Rollouts, jobs: list[RolloutJob]) -> list[float]:
    results = await asyncio.gather(*map(rollouts.run, jobs))
    return [result.reward for result in results if result.reward is not None]


async def test_the_mean_reward_has_no_bias_when_audited_ideas_are_weighted() -> None:
    """Over 30 seeds of the audit; unweighted, what is lost is (1 − q) times the share missed."""
    jobs = [job(HOPELESS, i) for i in range(120)] + [job(HOPEFUL, i) for i in range(30)]
    inner = Lucky(STATES)
    true = await rewards(inner, jobs)
    missed = fmean(true[:120]) * 120 / 150
    assert missed > 0.02
    means = {True: list[float](), False: list[float]()}
    for seed in range(30):
        for weighted, found in means.items():
            proxy = around(inner, seed=seed, weighted=weighted)
            found.append(fmean(await rewards(proxy, jobs)))
    for weighted, bias in ((True, 0.0), (False, -0.8 * missed)):
        error = stdev(means[weighted]) / 30**0.5
        assert fmean(means[weighted]) - fmean(true) == pytest.approx(bias, abs=4 * error)
    assert fmean(means[False]) < fmean(true) - 0.01


async def test_what_is_skipped_is_not_executed_and_said_to_be_so() -> None:
    inner = Lucky(STATES)
    proxy = around(inner)
    jobs = [job(HOPELESS, i) for i in range(200)]
    results = [await proxy.run(one) for one in jobs]
    skipped = [result for result in results if result.detail.startswith("not executed")]
    assert len(skipped) + len(inner.jobs) == 200
    assert 20 < len(inner.jobs) < 65
    assert {(r.outcome, r.reward, r.child, r.before) for r in skipped} == {
        ("not_improved", 0.0, None, STATES[0].score)
    }
    assert "a chance of 0.010" in skipped[0].detail
    executed = [result for result in results if result not in skipped]
    assert {result.reward for result in executed} <= {0.0, 5.0}
    assert any(result.reward == 5.0 and result.outcome == "improved" for result in executed)


async def test_counters_tell_what_was_saved_and_how_wrong_the_proxy_is() -> None:
    proxy = around(Lucky(STATES), audit=0.5)
    await rewards(proxy, [job(HOPELESS, i) for i in range(400)])
    await rewards(proxy, [job(HOPEFUL, i) for i in range(10)])
    counts = proxy.counts()
    assert counts["proxy_skipped"] + counts["proxy_audited"] == 400
    assert proxy.saved.executed == 10
    assert counts["proxy_saved_s"] == pytest.approx(2.0 * counts["proxy_skipped"])
    truth = proxy.saved.audited_improved / proxy.saved.audited
    assert 0.01 < truth < 0.12
    assert counts["proxy_bias"] == pytest.approx(truth - 0.01)


async def test_the_same_state_and_idea_are_always_decided_alike() -> None:
    jobs = [job(HOPELESS, i) for i in range(60)]
    first, second, other = Lucky(STATES), Lucky(STATES), Lucky(STATES)
    await asyncio.gather(*map(around(first).run, jobs))
    resumed = around(second)
    for one in reversed(jobs):  # another order, one at a time
        await resumed.run(one)
    await asyncio.gather(*map(around(other, seed=1).run, jobs))
    known = [{one.proposal.idea for one in each.jobs} for each in (first, second, other)]
    assert known[0] == known[1] != known[2]


def test_the_share_that_is_audited_is_the_one_asked_for() -> None:
    drawn = [audits(0, "s", idea(str(i)), 0.1) for i in range(4000)]
    assert 0.08 < fmean(drawn) < 0.12
    assert not any(audits(0, "s", idea(str(i)), 0.0) for i in range(100))
    assert all(audits(0, "s", idea(str(i)), 1.0) for i in range(100))


async def test_what_is_no_idea_and_what_broke_is_left_as_it_is() -> None:
    inner = Lucky(STATES)
    proxy = around(inner, threshold=1.0, audit=1.0)
    for proposal, reward in (
        (Proposal(None, "no tags", malformed=True), -1.0),
        (Proposal(None, "nothing to say"), 0.0),
        (Proposal(Idea("Go on.", "Use ratios.", "It helps.")), -1.0),
    ):
        result = await MadeRollouts(STATES).run(RolloutJob(state=STATES[0].id, proposal=proposal))
        assert result.reward == reward
        if proposal.idea is None:
            got = await proxy.run(RolloutJob(state=STATES[0].id, proposal=proposal))
            assert got == result
    assert isinstance(proxy.chances, Belief)
    assert proxy.chances.asked == []
    with pytest.raises(RuntimeFailure):
        await proxy.run(RolloutJob(state=STATES[0].id, proposal=Proposal(idea(BREAKS))))
    assert proxy.saved.audited == 0


def test_without_a_file_nothing_is_changed_and_settings_are_checked(tmp_path: Path) -> None:
    inner = MadeRollouts(STATES)
    assert proxied(inner, ProxyConfig()) is inner
    assert isinstance(around(inner), Rollouts)
    with pytest.raises(UsageError, match="is no proxy that can be read"):
        proxied(inner, ProxyConfig(file=str(tmp_path / "missing")))
    with pytest.raises(UsageError, match="'audit' must lie between 0 and 1"):
        load_config(ProxyConfig, overrides=["audit=2"])
    with pytest.raises(UsageError, match="nothing can be weighted"):
        ProxyConfig(audit=0.0)
    assert ProxyConfig(audit=0.0, weighted=False).audit == 0.0
