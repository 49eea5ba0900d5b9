"""Rollouts of which the surest zeros are not executed, or only now and then, to see what is lost.

Let p be the chance that the proxy gives an idea, t the threshold and q the audit's share. An idea
with p ≥ t is executed and earns its reward r. One with p < t is executed with probability q only:

    not executed   reward 0
    executed       reward r / q   (`weighted`), or r

Weighted, the mean over what is drawn is r for each idea (q · r/q + (1 − q) · 0), so the mean reward
of any set of ideas is what it would be without a proxy, and so is each advantage that is linear in
the rewards (`scale: none`). An advantage divided by the group's standard deviation is not linear,
and is biased towards 0 for the other answers of a group in which an audited idea improved. What is
lost is variance: 1/q − 1 for each idea that would have improved. Unweighted, the mean reward is too
low by (1 − q) times the share of ideas below t that improve.

The draw follows from seed, help state and idea alone, so that a run that is resumed decides alike.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import msgspec

from mle_ideator.idea_form import well_formed
from mle_ideator.rl.rollouts import Rollouts
from mle_ideator.rl.training.proxy.config import ProxyConfig
from mle_ideator.rl.training.proxy.model import Predictor, Proxy
from mle_ideator.rl.values import RolloutJob, RolloutResult, StateCard, result_of
from mle_ideator.types import HelpState, Idea


class Chances(Protocol):
    """Predicts, as `Predictor` does."""

    def chance(self, state: str, idea: Idea) -> float: ...


@dataclass
class Saved:
    """What the proxy did so far, in this process."""

    executed: int = 0
    """Ideas that it gave a chance."""
    skipped: int = 0
    audited: int = 0
    """Executed all the same, with a result."""
    audited_improved: int = 0
    audited_predicted: float = 0.0
    """Sum of the chances that it gave them."""
    seconds: float = 0.0
    """Of all that was executed."""

    @property
    def bias(self) -> float:
        """By how much more often audited ideas improved than was predicted; 0 before any."""
        return (self.audited_improved - self.audited_predicted) / max(1, self.audited)

    @property
    def saved_s(self) -> float:
        """About how long the skipped ones would have taken, if they took as long as the others."""
        return self.skipped * self.seconds / max(1, self.executed + self.audited)


@dataclass
class ProxiedRollouts:
    """Implements `Rollouts` around others. A skipped idea reaches no new help state."""

    rollouts: Rollouts
    chances: Chances
    threshold: float
    audit: float
    weighted: bool = True
    seed: int = 0
    saved: Saved = field(default_factory=Saved, init=False)

    async def run(self, job: RolloutJob) -> RolloutResult:
        idea = job.proposal.idea
        if idea is None or not well_formed(idea):
            return await self.rollouts.run(job)  # nothing is executed, or nothing is known of it
        chance = await asyncio.to_thread(self.chances.chance, job.state, idea)
        if chance >= self.threshold:
            return self._counted(await self.rollouts.run(job), audited=False, chance=chance)
        if not audits(self.seed, job.state, idea, self.audit):
            self.saved.skipped += 1
            before = self.rollouts.card(job.state).score
            why = f"not executed: the proxy gives it a chance of {chance:.3f} to improve"
            return result_of(job, "not_improved", before=before, detail=why)
        return self._counted(await self.rollouts.run(job), audited=True, chance=chance)

    def help_state(self, id: str) -> HelpState:
        return self.rollouts.help_state(id)

    def card(self, id: str) -> StateCard:
        return self.rollouts.card(id)

    def cards(self) -> Sequence[StateCard]:
        return self.rollouts.cards()

    def counts(self) -> dict[str, float]:
        """Those of the rollouts within, and what the proxy did."""
        within: Callable[[], dict[str, float]] = getattr(self.rollouts, "counts", dict)
        saved = self.saved
        return within() | {
            "proxy_skipped": float(saved.skipped),
            "proxy_audited": float(saved.audited),
            "proxy_saved_s": saved.saved_s,
            "proxy_bias": saved.bias,
        }

    def _counted(self, result: RolloutResult, *, audited: bool, chance: float) -> RolloutResult:
        if result.reward is None:
            return result
        saved = self.saved
        saved.seconds += result.seconds
        if not audited:
            saved.executed += 1
            return result
        saved.audited += 1
        saved.audited_improved += result.outcome == "improved"
        saved.audited_predicted += chance
        if not self.weighted:
            return result
        return msgspec.structs.replace(result, reward=result.reward / self.audit)


def audits(seed: int, state: str, idea: Idea, share: float) -> bool:
    """Is an idea of which nothing is expected executed all the same? Always the same answer."""
    what = msgspec.json.encode([seed, state, idea])
    drawn = int.from_bytes(hashlib.sha256(what).digest()[:8], "big") / 2**64
    return drawn < share


def proxied(rollouts: Rollouts, config: ProxyConfig, seed: int = 0) -> Rollouts:
    """The rollouts, with a proxy around them if the config names one. Raises `UsageError`."""
    if config.file is None:
        return rollouts
    proxy = Proxy.load(Path(config.file))
    given = config.threshold
    return ProxiedRollouts(
        rollouts,
        Predictor(proxy, rollouts.help_state),
        threshold=proxy.threshold(config.false_skip) if given is None else given,
        audit=config.audit,
        weighted=config.weighted,
        seed=seed,
    )
