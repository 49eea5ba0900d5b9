"""What goes home: the final solution, run again by itself in a clean sandbox."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from mle_ideator.journal import Journal, Refitted, Rerun, Warned
from mle_ideator.limits import Clock
from mle_ideator.setups import Setup
from mle_ideator.solutions import Solutions, Workspace, ranked
from mle_ideator.types import Execute, Scores, Solution

RERUNS = 3
"""How many solutions are tried, best first, until one runs in a clean sandbox."""


async def hand_over(
    setup: Setup, journal: Journal, clock: Clock, solutions: Sequence[Solution]
) -> Solution | None:
    """The best solution that a clean sandbox reproduces; the best one if none does.

    With `setup.whole_inputs` it is then fitted once more, to every labelled row.
    """
    handover = _Handover(setup, journal, clock)
    order = ranked(solutions, setup.config.selection, setup.task.min_delta)
    final = await handover.reproduced(order[:RERUNS])
    if final is None and order:
        final = order[0]
        handover.warn(f"solution #{final.number} is final, but was not reproduced")
    if final and setup.whole_inputs:
        await handover.refit(final, setup.whole_inputs)
    return final


@dataclass(frozen=True)
class _Alone:
    """What a solution did alone."""

    solution: Solution | None
    """As it was graded there; `None` if it wrote no valid submission."""
    detail: str
    """Why it failed; empty if it ran to its end and its submission is valid."""


@dataclass(frozen=True)
class _Handover:
    setup: Setup
    journal: Journal
    clock: Clock

    async def reproduced(self, order: Sequence[Solution]) -> Solution | None:
        for solution in order:
            if self.clock.left_s <= 1:
                self.warn("no time was left to run the final solution again")
                break
            alone = await self._run_alone(solution, "rerun")
            self.journal.append(
                Rerun(
                    at_s=self.clock.elapsed_s,
                    solution=solution.number,
                    reproduced=not alone.detail,
                    scores=alone.solution.scores if alone.solution else Scores(),
                    detail=alone.detail,
                )
            )
            if not alone.detail:
                return solution
        return None

    async def refit(self, final: Solution, inputs: str) -> None:
        """What it predicts now is not scored: it has seen the hold-out."""
        if self.clock.left_s > 1:
            detail = (await self._run_alone(final, "refit", inputs)).detail
        else:
            detail = "no time was left"
        self.journal.append(
            Refitted(at_s=self.clock.elapsed_s, solution=final.number, detail=detail)
        )
        if detail:
            reason = detail.splitlines()[-1]
            self.warn(f"the final solution was not fitted to the held-out rows as well: {reason}")

    async def _run_alone(
        self, solution: Solution, purpose: str, inputs: str | None = None
    ) -> _Alone:
        """Run a solution in a clean sandbox and keep what it wrote in `purpose/NUMBER`."""
        kept = self.setup.folder / purpose
        folder = kept / f"workspace-{solution.number:03d}"
        async with self.setup.open_sandbox(folder, inputs) as sandbox:
            workspace = Workspace(folder)
            workspace.restore(solution.code)
            cell = Execute("bash", "python solution.py")
            execution = await sandbox.execute(cell, self.clock.left_s)
            store = Solutions(kept, self.setup.grader, self.setup.task.metric)
            again, grade = await asyncio.to_thread(
                store.capture, workspace, solution.number, solution.step, execution.text
            )
        if execution.status != "ok":
            return _Alone(again, f"{execution.text[-2000:]}\n{execution.note}".strip())
        return _Alone(again, "; ".join(problem.message for problem in grade.problems))

    def warn(self, message: str) -> None:
        self.journal.append(Warned(at_s=self.clock.elapsed_s, message=message))
