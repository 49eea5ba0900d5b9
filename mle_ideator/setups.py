"""Who works on what, with what, and where: all that a session is given."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mle_ideator.config import RunConfig
from mle_ideator.errors import UsageError
from mle_ideator.protocols import (
    Grader,
    Ideator,
    Implementer,
    Sandbox,
    SandboxFactory,
    SandboxRequest,
)
from mle_ideator.registry import create
from mle_ideator.types import Task
from mle_ideator.waiting import release


def ideator_of(spec: str, options: Mapping[str, Any]) -> Ideator:
    """The ideator that a spec names. Raises `UsageError`."""
    found = create("ideators", spec, options)
    if not isinstance(found, Ideator):
        raise UsageError(f"{spec!r} is no ideator: it has no method propose.")
    return found


def implementer_of(spec: str, options: Mapping[str, Any]) -> Implementer:
    """The implementer that a spec names. Raises `UsageError`."""
    found = create("implementers", spec, options)
    if not isinstance(found, Implementer):
        raise UsageError(f"{spec!r} is no implementer: it has no method act.")
    return found


def threads_of(config: RunConfig) -> int:
    """What numerical libraries in a sandbox are told to use."""
    return config.threads or len(os.sched_getaffinity(0))


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where solutions of a task are run and judged."""

    task: Task
    grader: Grader
    sandbox: SandboxFactory
    config: RunConfig

    def open_sandbox(
        self, workspace: Path, inputs: str | None = None, snapshot: Path | None = None
    ) -> Sandbox:
        """With other inputs than the task's, or on a snapshot; then nothing of the workspace need
        be there after the end."""
        workspace.mkdir(parents=True, exist_ok=True)
        request = SandboxRequest(
            workspace=str(workspace),
            inputs=inputs or self.task.inputs,
            masked=self.task.masked,
            limits=self.config.sandbox_limits,
            threads=threads_of(self.config),
            gpus=self.config.gpus,
            preload=self.config.preload,
            snapshot=str(snapshot) if snapshot else None,
            keep=() if snapshot else None,
        )
        return self.sandbox(request)


@dataclass(frozen=True, kw_only=True)
class Setup(Place):
    """Who works on what, with what, and where."""

    implementer: Implementer
    ideator: Ideator
    folder: Path
    remarks: tuple[str, ...] = ()
    """What a person should know of how the task was read."""
    whole_inputs: str | None = None
    """The inputs with every labelled row, hold-out included: for the fit that goes home."""
    snapshot: Path | None = None
    """What the workspace holds at the beginning."""
    hands_over: bool = True
    """Is the final solution run once more in a clean sandbox? A rollout needs none."""

    async def aclose(self) -> None:
        """Close the agents' connections."""
        for agent in (self.implementer, self.ideator):
            await release(agent)
