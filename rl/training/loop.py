"""The whole of training, in one sitting: GRPO on one-step execution rewards (arXiv 2601.17596).

    draw help states → write G ideas to each → execute them → learn → take up what was earned

Against TRL's trainer, which does the same for GPUs and clusters: one process, no sharding, no paged
generation. In exchange the answers of the next step are written while the last are executed, and a
step that is gone on with is the step that would have been, to the last bit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any, NamedTuple

import torch

from mle_ideator.errors import RuntimeFailure
from mle_ideator.rl.training.advantages import advantages, informative
from mle_ideator.rl.training.batches import Batch, groups_of, restored, write_batch
from mle_ideator.rl.training.config import TrainConfig
from mle_ideator.rl.training.ground import Ground
from mle_ideator.rl.training.policy import Policy, Written
from mle_ideator.rl.training.values import Group

_MOST_RESAMPLES = 3
"""Times the batch that are drawn in search of groups with variance."""


class Lesson(NamedTuple):
    """An answer to learn from."""

    written: Written
    advantage: float


class Loop:
    """Trains a policy on a ground, a step at a time."""

    def __init__(
        self,
        config: TrainConfig,
        policy: Policy,
        ground: Ground,
        reference: Policy | None = None,
        doing: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`reference` is what `objective.kl` holds the policy to; `doing` hears what goes on."""
        self.config, self.policy, self.ground, self.reference = config, policy, ground, reference
        self._doing = doing
        self._next: Batch | None = None
        settings = config.optimiser
        self._optimiser = torch.optim.AdamW(
            policy.weights, lr=settings.lr, weight_decay=settings.weight_decay
        )
        self.steps = 0
        """That are done."""

    def step(self) -> dict[str, float]:
        """One update, and its metrics. Raises `RuntimeFailure` if no help state can be used."""
        began = time.monotonic()
        batch = self._next or self._write()
        self._next = self._write() if self.config.objective.overlap else None
        wrote_s = time.monotonic() - began
        groups, waited_s = groups_of(batch, self._waits)
        taught = list(zip(groups, batch.written, strict=True))
        if self.config.objective.zero_variance == "resample":
            taught, more_s = self._informative(taught)
            waited_s += more_s
        groups = [group for group, _ in taught]
        self._doing("learning")
        learnt = self._learn([lesson for one in taught for lesson in _lessons(*one, self._scale)])
        self.ground.observe(groups)
        self.steps += 1
        seconds = time.monotonic() - began
        return {
            **self.ground.metrics(groups),
            **learnt,
            "entropy": fmean(each.entropy for _, answers in taught for each in answers),
            "generate_s": wrote_s,
            "wait_s": waited_s,
            "learn_s": seconds - wrote_s - waited_s,
        }

    # --------------------------------------------------------------------------------- answers

    def _write(self) -> Batch:
        self._doing("writing ideas")
        config = self.config
        count, ideas = config.objective.states_per_step, config.writing.ideas_per_state
        batch = write_batch(self.policy, self.ground, count, ideas)
        if not batch.states:
            raise RuntimeFailure("no help state can be used: see what was said of them above.")
        return batch

    def _informative(
        self, taught: list[tuple[Group, list[Written]]]
    ) -> tuple[list[tuple[Group, list[Written]]], float]:
        """With further groups, until as many as wanted have variance; and the seconds waited."""
        wanted, waited = self.config.objective.states_per_step, 0.0
        for _ in range(_MOST_RESAMPLES):
            if sum(informative(group.rewards) for group, _ in taught) >= wanted:
                break
            batch = self._write()
            groups, seconds = groups_of(batch, self._waits)
            taught = [*taught, *zip(groups, batch.written, strict=True)]
            waited += seconds
        return taught, waited

    def _waits(self, groups: int) -> None:
        self._doing(f"executing ideas, {groups} groups left")

    # -------------------------------------------------------------------------------- learning

    @property
    def _scale(self) -> Any:
        return self.config.objective.scale

    def _learn(self, lessons: Sequence[Lesson]) -> dict[str, float]:
        """Updates on answers; nothing is changed if none teaches anything."""
        rate = self._rate()
        if not lessons:
            return {"loss": 0.0, "grad_norm": 0.0, "kl": 0.0, "lr": rate}
        found = {}
        for _ in range(self.config.objective.epochs):
            found = self._update(lessons, rate)
        return {**found, "lr": rate}

    def _update(self, lessons: Sequence[Lesson], rate: float) -> dict[str, float]:
        self.policy.model.train()
        self._optimiser.zero_grad()
        tokens = sum(len(lesson.written.tokens) for lesson in lessons)
        totals = torch.zeros(2)
        at_once = self.config.writing.at_once
        for start in range(0, len(lessons), at_once):
            loss, kl = self._objective(lessons[start : start + at_once])
            (loss / tokens).backward()
            totals += torch.stack([loss.detach(), kl]).cpu()
        norm = torch.nn.utils.clip_grad_norm_(self.policy.weights, self.config.optimiser.clip_norm)
        for group in self._optimiser.param_groups:
            group["lr"] = rate
        self._optimiser.step()
        loss, kl = (totals / tokens).tolist()
        return {"loss": loss, "kl": kl, "grad_norm": float(norm)}

    def _objective(self, lessons: Sequence[Lesson]) -> tuple[torch.Tensor, torch.Tensor]:
        """Sums over tokens: of the loss, and of the divergence from the reference."""
        settings = self.config.objective
        answers = [lesson.written for lesson in lessons]
        now = self.policy.judge(answers)
        then = torch.zeros_like(now.logps)
        for row, answer in enumerate(answers):
            then[row, : len(answer.logps)] = torch.tensor(answer.logps)
        gain = torch.tensor([[lesson.advantage] for lesson in lessons], device=now.logps.device)
        ratio = (now.logps - then).exp()
        bounded = ratio.clamp(1 - settings.clip, 1 + settings.clip)
        objective = torch.minimum(ratio * gain, bounded * gain) + settings.entropy * now.entropy
        kl = self._divergence(answers, now.logps)
        loss = -((objective - settings.kl * kl) * now.mask).sum()
        return loss, (kl * now.mask).sum().detach()

    def _divergence(self, answers: Sequence[Written], logps: torch.Tensor) -> torch.Tensor:
        """Of each token from the reference: never negative, and unbiased (Schulman's k3)."""
        if self.reference is None:
            return torch.zeros_like(logps)
        with torch.no_grad():
            other = self.reference.judge(answers).logps
        difference = other - logps
        return difference.exp() - difference - 1

    def _rate(self) -> float:
        settings = self.config.optimiser
        return settings.lr * min(1.0, (self.steps + 1) / max(1, settings.warm_up_steps))

    # ----------------------------------------------------------------------------------- state

    def state_dict(self) -> dict[str, Any]:
        """All that the next steps follow from, besides weights, buffer and executions."""
        return {
            "steps": self.steps,
            "optimiser": self._optimiser.state_dict(),
            "random": torch.get_rng_state(),
            "next": self._next.kept() if self._next else None,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from there; answers that were being executed are executed again, or remembered."""
        self.steps = state["steps"]
        self._optimiser.load_state_dict(state["optimiser"])
        torch.set_rng_state(state["random"])
        self._next = restored(self.ground, state["next"]) if state["next"] else None


def _lessons(group: Group, written: Sequence[Written], scale: Any) -> list[Lesson]:
    """What a group teaches: nothing if all its rewards are equal; masked answers never do."""
    if not informative(group.rewards):
        return []
    gains = advantages(group.rewards, scale)
    known = (reward is not None for reward in group.rewards)
    return [
        Lesson(answer, gain)
        for answer, gain, there in zip(written, gains, known, strict=True)
        if there
    ]
