"""A run of TRL's trainer: opened, watched, saved. Each process of a launch calls `train`."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, redirect_stdout
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple

from mle_ideator.chat.templates import ChatTemplate, context_of, opened
from mle_ideator.errors import UsageError
from mle_ideator.messages import Message
from mle_ideator.rl.buffer import disk
from mle_ideator.rl.buffer.buffer import EvolvingBuffer
from mle_ideator.rl.environments.one_step import OneStep
from mle_ideator.rl.training.checkpoints import latest_checkpoint
from mle_ideator.rl.training.config import TrainConfig
from mle_ideator.rl.training.episodes import new_buffer, opened_steps
from mle_ideator.rl.training.ground import Ground
from mle_ideator.rl.training.listening import Listener
from mle_ideator.rl.training.prompting import prompt_tokens
from mle_ideator.rl.training.room import Room, room_of
from mle_ideator.rl.training.small import BUFFER
from mle_ideator.rl.training.trl.contract import check_trl
from mle_ideator.rl.training.watching import WATCH, Watcher

Opening = Callable[[int], AbstractAsyncContextManager[OneStep]]
"""Episodes whose prompts have at most so many tokens, as estimated."""


def train(
    config: TrainConfig, run: Path, store: Path, model: str, listener: Listener, stop: Event
) -> str:
    """Go on until the last step; why it ended before, if it did. Raises `UsageError`."""
    begun, opening = partial(new_buffer, config, store), partial(opened_steps, config, store)
    return train_on(begun, opening, config, run, model, listener, stop)


def train_on(
    begun: Callable[[], EvolvingBuffer],
    opening: Opening,
    config: TrainConfig,
    run: Path,
    model: str,
    listener: Listener,
    stop: Event,
) -> str:
    """The same on any episodes. Only the main process opens them, with the buffer of the latest
    checkpoint, or one that is `begun`."""
    check_trl()
    from transformers.utils.logging import disable_progress_bar

    from mle_ideator.rl.training.trl.processes import process

    policy = _opened(config, model)
    watch = Watcher(config, run, listener, stop)
    with redirect_stdout(sys.stderr), warnings.catch_warnings():  # standard output is for results
        warnings.filterwarnings("ignore", category=FutureWarning)  # of transformers, to TRL
        disable_progress_bar()
        if process():
            return _trained(config, run, policy, None, watch)
        if latest := latest_checkpoint(run):
            watch.load(latest / WATCH)
        buffer = disk.load(latest / BUFFER) if latest else begun()
        ground = Ground(opening(policy.room.prompt), buffer, policy.fits, listener.said)
        with ground, watch.logs():
            return _trained(config, run, policy, ground, watch)


class _Policy(NamedTuple):
    """A model that is not read yet, and what makes prompts for it."""

    path: str
    template: ChatTemplate
    tokenizer: Any
    room: Room

    def fits(self, messages: Sequence[Message]) -> bool:
        return len(prompt_tokens(self.template, messages)) < self.room.context


def _opened(config: TrainConfig, model: str) -> _Policy:
    if model.endswith(".gguf"):
        raise UsageError(
            "TRL trains no GGUF file: make a folder of it by `sft`, or set trainer=loop."
        )
    known, tokenizer = opened(model, pretrained_model_name_or_path=model)
    context = context_of(known, tokenizer)
    room = room_of(context, config.model.context_tokens, config.writing.answer_tokens)
    tokenizer.model_max_length = room.context
    return _Policy(model, ChatTemplate(tokenizer, model), tokenizer, room)


def _trained(
    config: TrainConfig, run: Path, policy: _Policy, ground: Ground | None, watch: Watcher
) -> str:
    """In one process; `ground` is the main one's."""
    from mle_ideator.rl.training.trl.checkpoints import SIDE, Keeper, cleared, merged, resumed_from
    from mle_ideator.rl.training.trl.settings import grpo_config, lora
    from mle_ideator.rl.training.trl.trainer import GroundTrainer

    settings = grpo_config(config, policy.room.answer, run / SIDE)
    cleared(run)  # after the settings, which say how long processes wait for each other
    adapters = lora(config)
    served = {"do_sample": True, "temperature": config.writing.temperature}

    def add(folder: Path) -> None:
        watch.save(folder / WATCH)
        if ground is not None:
            disk.save(ground.buffer, folder / BUFFER)

    merge = partial(merged, policy.path, config.model.dtype, policy.tokenizer, served)
    keeper = Keeper(run, config.checkpoints.keep, add, merge if adapters else None)
    trainer = GroundTrainer(
        policy.path,
        ground,
        policy.template,
        policy.tokenizer,
        settings,
        peft_config=adapters,
        resample=config.objective.zero_variance == "resample",
        told=watch.step,
        doing=watch.listener.doing,
        write=keeper.write,
    )
    trainer.model.generation_config.update(**served)
    latest = latest_checkpoint(run)
    trainer.train(resume_from_checkpoint=str(resumed_from(latest)) if latest else None)
    return watch.why
