"""All installed task sources as one."""

from __future__ import annotations

from mle_ideator.errors import TaskError, unknown
from mle_ideator.protocols import Grader, TaskCard, TaskSource
from mle_ideator.registry import create, registered
from mle_ideator.types import Task


def all_cards() -> list[TaskCard]:
    """The cards of every task of every source, in the sources' own order."""
    return [card for source in _sources() for card in source.cards()]


def load_task(task_id: str) -> tuple[Task, Grader]:
    """A task and its grader, built if need be. Raises `TaskError` naming the nearest id."""
    known = []
    for source in _sources():
        ids = [card.id for card in source.cards()]
        if task_id in ids:
            return source.load(task_id)
        known += ids
    raise TaskError(unknown("task", task_id, known))


def _sources() -> list[TaskSource]:
    return [create("task_sources", name) for name in registered("task_sources")]
