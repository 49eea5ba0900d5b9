"""What goes home: the final solution, run again by itself in a clean sandbox."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from mle_ideator.alone import Alone, run_alone
from mle_ideator.journal import Journal, Refitted, Rerun, Warned
from mle_ideator.limits import Clock
from mle_ideator.setups import Setup
from mle_ideator.solutions import beats, ranked
from mle_ideator.types import Scores, Solution

RERUNS = 5
"""How many solutions are tried, best first, at most."""


async def hand_over(
    setup: Setup, journal: Journal, clock: Clock, solutions: Sequence[Solution]
) -> Solution | None:
    """The solution that is best by what it does alone; the best credited one if none runs.

    With `setup.whole_inputs` it is then fitted once more, to every labelled row.
    """
    handover = _Handover(setup, journal, clock)
    order = ranked(solutions, setup.config.selection, setup.task.min_delta)
    final = await handover.best_alone(order)
    if final is None and order:
        final = order[0]
        handover.warn(f"solution #{final.number} is final, but was not reproduced")
    if final and setup.whole_inputs:
        await handover.refit(final, setup.whole_inputs)
    return final


@dataclass(frozen=True)
class _Handover:
    setup: Setup
    journal: Journal
    clock: Clock

    async def best_alone(self, order: Sequence[Solution]) -> Solution | None:
        """Run solutions, best first, until none that is left could beat what one did alone.

        Credit is given for what a workspace held; `solution.py` need not be what made it.
        """
        alone: list[Solution] = []
        for solution, rival in zip_longest(order[:RERUNS], order[1:RERUNS]):
            if self.clock.left_s <= 1:
                self.warn("no time was left to run the final solution again")
                break
            again = await self._rerun(solution)
            if again:
                alone.append(again)
                if rival is None or not self._beats(rival, alone):
                    break
        best = next(iter(ranked(alone, self.setup.config.selection)), None)
        return next((s for s in order if best and s.number == best.number), None)

    def _beats(self, rival: Solution, alone: Sequence[Solution]) -> bool:
        best = ranked(alone, self.setup.config.selection)[0]
        return beats(rival, best, self.setup.config.selection, self.setup.task.min_delta)

    async def _rerun(self, solution: Solution) -> Solution | None:
        """The solution as it was graded alone, or `None` if it failed."""
        alone = await self._run_alone(solution, "rerun")
        again = alone.solution if not alone.detail else None
        self.journal.append(
            Rerun(
                at_s=self.clock.elapsed_s,
                solution=solution.number,
                reproduced=again is not None,
                scores=again.scores if again else Scores(),
                detail=alone.detail,
            )
        )
        if again and _shown(again.scores) != _shown(solution.scores):
            self.warn(
                f"solution #{solution.number} scores otherwise when run alone: "
                f"{_shown(solution.scores)} became {_shown(again.scores)}"
            )
        return again

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
    ) -> Alone:
        """Run a solution in a clean sandbox and keep what it wrote in `purpose/NUMBER`."""
        kept = self.setup.folder / purpose
        return await run_alone(self.setup, solution, kept, self.clock.left_s, inputs)

    def warn(self, message: str) -> None:
        self.journal.append(Warned(at_s=self.clock.elapsed_s, message=message))


def _shown(scores: Scores) -> str:
    return f"validation {scores.validation}, public {scores.public}"
