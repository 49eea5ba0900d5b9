"""What a run begins with: help states, a model, a warm-up. Each part that is there is taken as it
is, so that a run that was broken off here goes on."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from pathlib import Path

from mle_ideator.benchmarks.runner.bench import run_bench
from mle_ideator.benchmarks.runner.folders import LOGS
from mle_ideator.benchmarks.runner.local import LocalEngine
from mle_ideator.benchmarks.runner.plan import Asked, common_config
from mle_ideator.benchmarks.suites import suite_tasks
from mle_ideator.config import RunConfig, load_config
from mle_ideator.errors import UsageError
from mle_ideator.ideators.prompted.messages import messages_of
from mle_ideator.ideators.random_operation import RandomIdeator
from mle_ideator.rl.collecting import collected
from mle_ideator.rl.files import files_of
from mle_ideator.rl.states import StateStore
from mle_ideator.rl.training.config import TrainConfig, WarmUpStep
from mle_ideator.rl.training.listening import Listener
from mle_ideator.rl.values import StateCard

SUITE = "bundled:train"
STATES, MODEL, WARM_UP = "states.db", "model", "warm_up"
TINY = "tiny"
TINY_CONTEXT = 1024
_TEXTS = 200
"""Help states from which the tiny model's words are learnt."""


def store_of(config: TrainConfig, run: Path) -> Path:
    """Where the help states lie, or will."""
    return Path(config.states.store) if config.states.store else run / STATES


def states_of(config: TrainConfig, run: Path, listener: Listener) -> Path:
    """The store, collected now if none is named. Raises `UsageError` if it holds nothing."""
    store = store_of(config, run)
    if not config.states.store:
        listener.doing("collecting help states")
        asyncio.run(_collect(config, store, listener))
    if not cards_of(config, store):
        raise UsageError(f"{store} holds no help state of these tasks; fill it with `collect`.")
    return store


async def _collect(config: TrainConfig, store: Path, listener: Listener) -> None:
    settings = config.states
    runs = files_of(store).runs
    shared = load_config(
        RunConfig,
        overrides=["keep_help_states=true"],
        sandbox=config.rollouts.sandbox,
        limits__steps=settings.steps,
    )
    asked = Asked(
        suite="own" if settings.tasks else SUITE,
        tasks=settings.tasks or suite_tasks(SUITE, None).tasks,
        ideators=settings.ideators,
        implementers=None,
        seeds=tuple(range(settings.seeds)),
        config=common_config(shared),
    )
    workers = config.rollouts.workers or 2
    await run_bench(runs, asked, lambda _: LocalEngine(workers, runs / LOGS), listener.session)
    for problem in collected(store).problems:
        listener.said(f"no help state: {problem}")


def cards_of(config: TrainConfig, store: Path) -> list[StateCard]:
    """The help states to begin with, in the order of the store."""
    settings = config.states
    with StateStore.that_is_there(store) as there:
        return there.chosen(settings.tasks, reached=settings.reached)


def model_of(config: TrainConfig, run: Path, store: Path, listener: Listener) -> str:
    """The model that training begins with: a path, or a name on the hub."""
    path = config.model.path
    if path == TINY:
        path = str(_tiny(config, run, store, listener))
    if config.warm_up is None:
        return path
    warm = run / WARM_UP
    if not warm.exists():
        _warm_up(config, config.warm_up, path, store, warm, listener)
    return str(warm)


def _tiny(config: TrainConfig, run: Path, store: Path, listener: Listener) -> Path:
    from mle_ideator.rl.training.tiny import make_tiny

    folder = run / MODEL
    if not folder.exists():
        listener.doing("making a tiny model")
        shape = config.model
        make_tiny(
            folder,
            _texts(config, store),
            vocab=shape.vocabulary,
            hidden=shape.width,
            layers=shape.layers,
            heads=shape.heads,
            context=shape.context_tokens or TINY_CONTEXT,
            seed=config.seed,
        )
    return folder


def _texts(config: TrainConfig, store: Path) -> Iterator[str]:
    """Prompts, and random ideas: the words that the tiny model needs."""
    from mle_ideator.rl.training.prompting import answer_text
    from mle_ideator.rl.training.room import room_of

    room = room_of(config.model.context_tokens or TINY_CONTEXT, None)
    form, ideator = config.writing.form, RandomIdeator()
    with StateStore.that_is_there(store) as there:
        for card in itertools.islice(cards_of(config, store), _TEXTS):
            state = there.help_state(card.id)
            yield from (message.text for message in messages_of(state, room.prompt, form))
            proposal = asyncio.run(ideator.propose(state))
            if proposal.idea:
                yield answer_text(proposal.idea, form)


def _warm_up(
    config: TrainConfig, step: WarmUpStep, model: str, store: Path, out: Path, listener: Listener
) -> None:
    from mle_ideator.rl.training.warm_up.config import WarmUpConfig
    from mle_ideator.rl.training.warm_up.running import warm_up

    wanted = WarmUpConfig(
        states=str(store),
        model=model,
        out=str(out),
        ideas_from=step.ideas_from,
        which=step.which,
        ideas=step.ideas,
        tasks=config.states.tasks,
        reached=config.states.reached,
        short=step.short,
        form=config.writing.form,
        epochs=step.epochs,
        batch=step.batch,
        lr=step.lr,
        context_tokens=config.model.context_tokens,
        lora_rank=config.model.lora_rank,
        workers=config.rollouts.workers,
        sandbox=config.rollouts.sandbox,
        limit_s=config.rollouts.limit_s,
        seed=config.seed,
    )
    warm_up(wanted, listener.warming)
