"""A solution run by itself: in a clean sandbox, with nothing of the session that made it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from mle_ideator.setups import Place
from mle_ideator.solutions import Solutions, Workspace
from mle_ideator.types import Execute, SandboxInfo, Solution, Status


@dataclass(frozen=True, kw_only=True)
class Alone:
    """What a solution did alone."""

    solution: Solution | None
    """As it was graded there; `None` if it wrote no valid submission."""
    detail: str
    """Why it failed; empty if it ran to its end and its submission is valid."""
    status: Status
    """How its cell ended."""
    duration_s: float
    sandbox: SandboxInfo


async def run_alone(
    place: Place, solution: Solution, kept: Path, seconds: float, inputs: str | None = None
) -> Alone:
    """Run a solution's code alone, for so long at most, and keep what it wrote in `kept/NUMBER`.

    `inputs` is what it reads, if that is not the task's own. Its workspace remains too.
    """
    folder = kept / f"workspace-{solution.number:03d}"
    async with place.open_sandbox(folder, inputs) as sandbox:
        workspace = Workspace(folder)
        workspace.restore(solution.code)
        execution = await sandbox.execute(Execute("bash", "python solution.py"), seconds)
        store = Solutions(kept, place.grader, place.task.metric)
        again, grade = await asyncio.to_thread(
            store.capture, workspace, solution.number, solution.step, execution.text
        )
        info = sandbox.info
    if execution.status == "ok":
        detail = "; ".join(problem.message for problem in grade.problems)
    else:
        detail = f"{execution.text[-2000:]}\n{execution.note}".strip()
    return Alone(
        solution=again,
        detail=detail,
        status=execution.status,
        duration_s=execution.duration_s,
        sandbox=info,
    )
