"""A warm-up from beginning to end: help states, ideas, training, the model's folder."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any, NamedTuple

import msgspec

from mle_ideator.chat.calls import CallFailed
from mle_ideator.chat.hf import Transformers
from mle_ideator.chat.specs import needs
from mle_ideator.config import dump_config
from mle_ideator.errors import UsageError, unknown
from mle_ideator.protocols import Ideator
from mle_ideator.rl.gists import gists_of
from mle_ideator.rl.opening import opened_rollouts
from mle_ideator.rl.rollouts import Rollouts
from mle_ideator.rl.states import StateStore
from mle_ideator.rl.training.room import room_of
from mle_ideator.rl.training.warm_up.config import Answers, Ideas, Progress, WarmedUp, WarmUpConfig
from mle_ideator.rl.training.warm_up.examples import Example, Reader, held_out_of
from mle_ideator.rl.training.warm_up.ideas import Asking, Note, Source, gathered
from mle_ideator.rl.training.warm_up.sampling import drawn, judged, sample
from mle_ideator.rl.training.warm_up.training import Passed, learn, merged, ready
from mle_ideator.rl.values import StateCard
from mle_ideator.setups import ideator_of
from mle_ideator.types import HelpState
from mle_ideator.waiting import release

REPORT, SETTINGS, IDEAS = "warm_up.json", "warm_up.yaml", "ideas.jsonl"
_ASKED_AT_ONCE = 4
Told = Callable[[Progress], None]


def warm_up(config: WarmUpConfig, told: Told = lambda _: None) -> WarmedUp:
    """Teach a model the ideas of an ideator; `hf:OUT` then serves the result.

    The ideas are kept in `OUT.ideas.jsonl` as they come, so that a call that was broken off asks
    for none of them again; training starts anew. Raises `UsageError` if the call is wrong or
    nothing can be learnt. Not to be called within an event loop.
    """
    out = Path(config.out)
    if out.exists():
        raise UsageError(f"{out} is there already; name another folder, or remove it.")
    if config.lora_rank:
        needs("peft", "train")
    endpoint = Transformers(config.model.removeprefix("hf:"))  # before ideas are paid for
    material = _material(endpoint, config, told)
    begun = time.monotonic()
    model = ready(_weights(endpoint), config)
    learnt = learn(model, material.examples, material.measured_on, config, _passing(told))
    model, training_s = merged(model), time.monotonic() - begun
    begun = time.monotonic()
    answers = _answers(model, material, config, told)
    tenth = max(1, len(learnt.losses) // 10)
    warmed = WarmedUp(
        model=str(out),
        states=len(material.states),
        held_out_states=len(material.held_out),
        ideas=material.ideas,
        updates=len(learnt.losses),
        loss_first=fmean(learnt.losses[:tenth]),
        loss_last=fmean(learnt.losses[-tenth:]),
        held_out_loss_before=learnt.held_out_before,
        held_out_loss=learnt.held_out,
        answers=answers,
        ideas_s=material.took_s,
        training_s=training_s,
        sampling_s=time.monotonic() - begun,
    )
    endpoint.tokenizer.model_max_length = material.reader.room.context
    _write(out, model, endpoint.tokenizer, config, warmed)
    return warmed


def _weights(endpoint: Transformers) -> Any:
    try:
        return endpoint.model()
    except CallFailed as error:
        raise UsageError(f"{endpoint.name}: {error}.") from error


class _Material(NamedTuple):
    """What is learnt from and measured on."""

    reader: Reader
    states: dict[str, HelpState]
    held_out: frozenset[str]
    """Of the states."""
    examples: list[Example]
    measured_on: list[Example]
    """Those of held-out states."""
    ideas: Ideas
    took_s: float


def _material(endpoint: Transformers, config: WarmUpConfig, told: Told) -> _Material:
    """Raises `UsageError` if there is nothing to learn from."""
    begun = time.monotonic()
    room = room_of(endpoint.context_tokens, config.context_tokens)
    with StateStore.that_is_there(Path(config.states)) as store:
        cards = _chosen(store, config)
        notes = asyncio.run(_noted(store, cards, config, told))
        states = {card.id: store.help_state(card.id) for card in cards}
        reader = Reader(
            endpoint=endpoint,
            room=room,
            form=config.form,
            which=config.which,
            gists=gists_of(store) if config.short else None,
        )
        examples, ideas = reader.read(notes, states)
    held_out = held_out_of(list(states), config.held_out, config.seed)
    learnt_from = [example for example in examples if example.state not in held_out]
    if not learnt_from:
        raise UsageError(_why_nothing(ideas, config))
    measured_on = [example for example in examples if example.state in held_out]
    took_s = time.monotonic() - begun
    return _Material(reader, states, held_out, learnt_from, measured_on, ideas, took_s)


def _why_nothing(ideas: Ideas, config: WarmUpConfig) -> str:
    counts = {name.replace("_", " "): getattr(ideas, name) for name in ideas.__struct_fields__}
    what = ", ".join(f"{name} {count}" for name, count in counts.items())
    hint = "take a larger model, or short ideas" if ideas.too_long else "ask for more ideas"
    return f"there is nothing to learn from ({config.ideas_from}: {what}); {hint}."


# -------------------------------------------------------------------------------------- ideas


def _chosen(store: StateStore, config: WarmUpConfig) -> list[StateCard]:
    known = store.tasks()
    if missing := [task for task in config.tasks if task not in known]:
        raise UsageError(unknown("task of the help states", missing[0], known))
    cards = store.chosen(config.tasks, reached=config.reached)
    if not cards:
        raise UsageError(f"{config.states} holds no help state; fill it with `collect`.")
    if config.limit is None or config.limit >= len(cards):
        return cards
    return Random(config.seed).sample(cards, config.limit)


async def _noted(
    store: StateStore, cards: Sequence[StateCard], config: WarmUpConfig, told: Told
) -> list[Note]:
    async with AsyncExitStack() as stack:
        ideator = ideator_of(config.ideas_from, config.ideator_options)
        stack.push_async_callback(release, ideator)
        rollouts: Rollouts | None = None
        if config.which == "worked":
            opening = opened_rollouts(
                store.path,
                engine=config.engine,
                workers=config.workers,
                address=config.address,
                sandbox=config.sandbox,
                limit_s=config.limit_s,
            )
            rollouts = await stack.enter_async_context(opening)
        return await gathered(
            Asking(
                ideator=ideator,
                rollouts=rollouts,
                help_state=store.help_state,
                seed=config.seed,
                idea_s=config.idea_s,
            ),
            cards,
            config.ideas,
            _at_once(ideator, config),
            ideas_file(Path(config.out)),
            Source(ideator=config.ideas_from, options=config.ideator_options, seed=config.seed),
            lambda note, done, planned: told(
                Progress(phase="ideas", done=done, planned=planned, note=note.broken)
            ),
        )


def _at_once(ideator: Ideator, config: WarmUpConfig) -> int:
    if getattr(ideator, "uses_terminal", False):
        return 1
    if config.parallel is not None or config.which == "all":
        return config.parallel or _ASKED_AT_ONCE
    return 2 * (config.workers or len(os.sched_getaffinity(0)))


def ideas_file(out: Path) -> Path:
    """Where the ideas for a model in this folder are kept while there is no such folder."""
    return out.with_name(f"{out.name}.{IDEAS}")


# ----------------------------------------------------------------------------------- training


def _passing(told: Told) -> Callable[[Passed], None]:
    return lambda passed: told(
        Progress(phase="training", done=passed.number, planned=passed.of, values=passed.values)
    )


def _answers(model: Any, material: _Material, config: WarmUpConfig, told: Told) -> Answers:
    """What the model answers on help states that it did not learn from."""
    reader, states = material.reader, material.states
    prompts = {id: tokens for id in material.held_out if (tokens := reader.prompt(id, states[id]))}
    asked = drawn(list(prompts), config.sampled, config.seed)
    written = sample(
        model,
        reader.endpoint.tokenizer,
        [prompts[id] for id in asked],
        reader.room.answer,
        config.seed,
        lambda done: told(Progress(phase="sampling", done=done, planned=len(asked))),
    )
    return asyncio.run(judged(written, [states[id] for id in asked], config.form))


def _write(out: Path, model: Any, tokenizer: Any, config: WarmUpConfig, warmed: WarmedUp) -> None:
    """The folder, whole or not at all."""
    with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as part:
        whole = Path(part, "model")
        model.save_pretrained(whole)
        tokenizer.save_pretrained(whole)
        (whole / SETTINGS).write_text(dump_config(config), encoding="utf-8")
        (whole / REPORT).write_bytes(msgspec.json.format(msgspec.json.encode(warmed)) + b"\n")
        shutil.copyfile(ideas_file(out), whole / IDEAS)
        whole.rename(out)
    ideas_file(out).unlink()
