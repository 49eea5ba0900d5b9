"""A run of the small loop: opened, stepped, watched, saved."""

from __future__ import annotations

from pathlib import Path
from threading import Event

import torch

from mle_ideator.rl.buffer import disk
from mle_ideator.rl.training.checkpoints import latest_checkpoint, write_checkpoint
from mle_ideator.rl.training.config import TrainConfig
from mle_ideator.rl.training.episodes import new_buffer, opened_steps
from mle_ideator.rl.training.ground import Ground
from mle_ideator.rl.training.listening import Listener
from mle_ideator.rl.training.loop import Loop
from mle_ideator.rl.training.policy import Policy
from mle_ideator.rl.training.watching import WATCH, Watcher

BUFFER, TRAINER = "buffer", "trainer.pt"


def train(
    config: TrainConfig, run: Path, store: Path, model: str, listener: Listener, stop: Event
) -> str:
    """Go on until the last step; why it ended before, if it did."""
    torch.manual_seed(config.seed)
    latest = latest_checkpoint(run)
    whole = latest if latest and not config.model.lora_rank else None
    policy = Policy(str(whole or model), config.model, config.writing)
    reference = None
    if config.objective.kl:
        reference = Policy(model, config.model, config.writing).frozen()
    buffer = disk.load(latest / BUFFER) if latest else new_buffer(config, store)
    opening = opened_steps(config, store, policy.room.prompt)
    with Ground(opening, buffer, policy.fits, listener.said) as ground:
        loop = Loop(config, policy, ground, reference, listener.doing)
        going = _Run(config, run, loop, Watcher(config, run, listener, stop))
        if latest:
            going.restore(latest)
        else:
            going.save()
        return going.to_the_end()


class _Run:
    """A loop in its folder."""

    def __init__(self, config: TrainConfig, run: Path, loop: Loop, watch: Watcher) -> None:
        self._config, self._run, self._loop, self._watch = config, run, loop, watch

    def to_the_end(self) -> str:
        """Why it ended before its last step, if it did."""
        loop, settings = self._loop, self._config
        with self._watch.logs():
            while loop.steps < settings.steps:
                metrics = loop.step()
                ends = self._watch.step(loop.steps, metrics) or loop.steps == settings.steps
                if ends or loop.steps % settings.checkpoints.every == 0:
                    self.save()
                if self._watch.why:
                    break
        return self._watch.why

    def save(self) -> None:
        self._watch.listener.doing("saving a checkpoint")
        keep = self._config.checkpoints.keep
        write_checkpoint(self._run, self._loop.steps, keep, self._write)

    def _write(self, folder: Path) -> None:
        loop = self._loop
        adapters = loop.policy.adapters() if self._config.model.lora_rank else None
        loop.policy.save(folder)
        disk.save(loop.ground.buffer, folder / BUFFER)
        torch.save({"loop": loop.state_dict(), "adapters": adapters}, folder / TRAINER)
        self._watch.save(folder / WATCH)

    def restore(self, folder: Path) -> None:
        """Be as it was when this checkpoint was written."""
        state = torch.load(folder / TRAINER, weights_only=True)
        if state["adapters"] is not None:
            self._loop.policy.load_adapters(state["adapters"])
        self._watch.load(folder / WATCH)
        self._loop.load_state_dict(state["loop"])
