"""What can be found wrong with a plan before anything runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from mle_ideator.benchmarks.measures.values import Cell
from mle_ideator.benchmarks.runner.plan import Plan
from mle_ideator.benchmarks.setups import agents_of
from mle_ideator.benchmarks.sources import load_task
from mle_ideator.config import RunConfig
from mle_ideator.errors import UsageError
from mle_ideator.help_policy import help_policy
from mle_ideator.sandboxes import choose_sandbox
from mle_ideator.sandboxes.limits.gpus import visible_gpus
from mle_ideator.waiting import release


async def check(plan: Plan, cells: Iterable[Cell], building: Callable[[str], None]) -> None:
    """Agents, sandbox and tasks of these cells: each is made once, and let go.

    Tasks that were never built are built now, so that workers need not do it side by side;
    `building` is told of each task. Raises `UsageError` in one line.
    """
    todo = list(cells)
    if not todo:
        return
    config = plan.config_of(todo[0])
    help_policy(config.help_policy)
    visible_gpus(config.gpus)
    name, sandbox = choose_sandbox(config.sandbox, config.sandbox_options)
    if reason := sandbox.unavailable():
        raise UsageError(f"the {name} sandbox can not be used here: {reason}")
    for example in {cell.contender: cell for cell in todo}.values():
        await _check_agents(plan.config_of(example))
    for task in dict.fromkeys(cell.task for cell in todo):
        building(task)
        await asyncio.to_thread(load_task, task)


async def _check_agents(config: RunConfig) -> None:
    agents = agents_of(config)
    try:
        for agent, spec in zip(agents, (config.implementer, config.ideator), strict=True):
            if getattr(agent, "uses_terminal", False):
                raise UsageError(f"{spec!r} asks a person at the terminal; a matrix has none.")
    finally:
        for agent in agents:
            await release(agent)
