"""What a matrix is made of, frozen in `plan.yaml` when it is begun.

A later call goes on with it. Tasks, agents and seeds may be added; nothing that was planned may be
left out or changed, so that all runs of one folder can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import msgspec

from mle_ideator import __version__
from mle_ideator.benchmarks.measures.values import Cell, Contender
from mle_ideator.benchmarks.runner.folders import PLAN
from mle_ideator.config import RunConfig, dump_config, load_config
from mle_ideator.errors import UsageError
from mle_ideator.files import replace_file
from mle_ideator.types import Value

OF_A_CELL = ("task", "data", "implementer", "ideator", "seed")
"""Fields of a run's config that the matrix decides."""


class Asked(Value, frozen=True, kw_only=True):
    """What a call says; `None` is as planned, or the default."""

    suite: str | None = None
    tasks: tuple[str, ...] | None = None
    """Specs, as `--task` takes them."""
    ideators: tuple[str, ...] | None = None
    implementers: tuple[str, ...] | None = None
    seeds: tuple[int, ...] | None = None
    config: dict[str, Any] | None = None
    """As `common_config` gives it."""


class Plan(Value, frozen=True, kw_only=True):
    """A matrix: every task with every pair of agents and every seed."""

    version: str
    """Of mle-ideator, when it was begun."""
    suite: str
    tasks: tuple[str, ...]
    ideators: tuple[str, ...]
    implementers: tuple[str, ...]
    seeds: tuple[int, ...]
    config: dict[str, Any]
    """What is common to all runs: a run's config without what the matrix decides."""

    @property
    def contenders(self) -> tuple[Contender, ...]:
        pairs = product(self.implementers, self.ideators)
        return tuple(Contender(ideator, implementer) for implementer, ideator in pairs)

    def cells(self) -> list[Cell]:
        """Seed by seed, then task by task: contenders can be compared early."""
        order = product(self.seeds, self.tasks, self.contenders)
        return [Cell(task, contender, seed) for seed, task, contender in order]

    def config_of(self, cell: Cell) -> RunConfig:
        """The config of one run. Raises `UsageError`."""
        return load_config(
            RunConfig,
            None,
            (),
            **self.config,
            task=cell.task,
            implementer=cell.contender.implementer,
            ideator=cell.contender.ideator,
            seed=cell.seed,
        )


def common_config(config: RunConfig) -> dict[str, Any]:
    """What all runs share. Raises `UsageError` where a config says what the matrix decides."""
    usual = RunConfig()
    for name in OF_A_CELL:
        if getattr(config, name) != getattr(usual, name):
            raise UsageError(
                f"the config says {name!r}, which differs from run to run here: use --suite, "
                "--implementer, --ideator and --seed."
            )
    values: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(config))
    return {key: value for key, value in values.items() if key not in OF_A_CELL}


def planned(results: Path, asked: Asked) -> Plan:
    """The plan of a results folder with what is asked for; nothing is written.

    Raises `UsageError` if that is not what was planned, or if there is nothing to plan with.
    """
    if not (results / PLAN).exists():
        return _new(asked)
    return _extended(read_plan(results), asked)


def read_plan(results: Path) -> Plan:
    """The plan of a results folder. Raises `UsageError` if there is none that can be read."""
    if not (results / PLAN).exists():
        raise UsageError(f"{results} holds no {PLAN}: it is no results folder of `bench run`.")
    return load_config(Plan, results / PLAN)


def write_plan(results: Path, plan: Plan) -> None:
    replace_file(results / PLAN, dump_config(plan).encode())


def _new(asked: Asked) -> Plan:
    if asked.suite is None or not asked.tasks:
        raise UsageError("say what to run: --suite NAME.")
    return Plan(
        version=__version__,
        suite=asked.suite,
        tasks=_once(asked.tasks),
        ideators=_once(asked.ideators or ("offline",)),
        implementers=_once(asked.implementers or ("offline",)),
        seeds=_once(asked.seeds or (0, 1, 2)),
        config=asked.config if asked.config is not None else common_config(RunConfig()),
    )


def _extended(plan: Plan, asked: Asked) -> Plan:
    if asked.config is not None:
        _same_config(plan.config, asked.config)
    return msgspec.structs.replace(
        plan,
        suite=asked.suite or plan.suite,
        tasks=_more("task", plan.tasks, asked.tasks),
        ideators=_more("ideator", plan.ideators, asked.ideators),
        implementers=_more("implementer", plan.implementers, asked.implementers),
        seeds=_more("seed", plan.seeds, asked.seeds),
    )


def _more(what: str, planned: tuple[Any, ...], asked: tuple[Any, ...] | None) -> tuple[Any, ...]:
    """What was planned, then what is new. All that was planned has to be asked for again."""
    if asked is None:
        return planned
    left_out = [str(item) for item in planned if item not in asked]
    if left_out:
        raise UsageError(
            f"these results were planned with {what} {', '.join(left_out)}, which this call leaves "
            f"out; name {'it' if len(left_out) == 1 else 'them'} too (more may be added), or "
            "begin anew with another --out."
        )
    return _once([*planned, *asked])


def _same_config(planned: dict[str, Any], asked: dict[str, Any]) -> None:
    # an earlier version's plan does not say what is new since: that was as it is by default
    was, now = _flat(common_config(RunConfig())) | _flat(planned), _flat(asked)
    for key in [*was, *(key for key in now if key not in was)]:
        if was.get(key) != now.get(key):
            raise UsageError(
                f"these results were planned with {key} = {was.get(key)}, not {now.get(key)}; "
                "call it as it was, or begin anew with another --out."
            )


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict) and value:
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


def _once(items: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(items))
