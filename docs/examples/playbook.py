"""An ideator of one's own: it goes through a list of plays, and back when one did not help.

`playbook` has five plays; `playbook:FILE` reads others, one a line. An ideator holds nothing
between calls: which plays were used, and what came of them, is all in the state.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from msgspec import Meta

from mle_ideator.errors import UsageError
from mle_ideator.types import HelpState, Idea, Proposal, Situation, Value

PLAYS = (
    "Replace the model by histogram gradient boosting with early stopping.",
    "Add the ratios and products of the numeric columns that matter most.",
    "Encode categories of many levels by the out-of-fold mean of the target.",
    "Search the model's main hyper-parameters at random under cross-validation.",
    "Average the predictions of the best models of different families.",
)


class PlaybookOptions(Value, frozen=True, kw_only=True):
    """What `--set ideator_options.NAME=…` may say."""

    patience: Annotated[int, Meta(ge=1)] = 1
    """So many steps must lie between a play and the next one."""


class Playbook:
    """Proposes the first play that was not used yet, on top of the best solution."""

    Options = PlaybookOptions

    def __init__(self, file: str = "", options: PlaybookOptions | None = None) -> None:
        self.plays = _read(file) if file else PLAYS
        self.patience = (options or PlaybookOptions()).patience

    async def propose(self, state: HelpState) -> Proposal:
        steps = state.situation.trajectory
        given = [step for step in steps if step.idea is not None]
        if given and len(steps) - given[-1].number < self.patience:
            return Proposal(None, f"step {given[-1].number}'s play is not played out yet")
        used = {step.idea.action for step in given if step.idea}
        play = next((play for play in self.plays if play not in used), None)
        if play is None:
            return Proposal(None, "every play of the book was used")
        return Proposal(Idea(_analysis(state.situation), play, "It helps on most tables."))


def _analysis(situation: Situation) -> str:
    """Where to go on from: the best solution, if the workspace holds another one."""
    best = situation.best_solution
    if best is None:
        return "Refine: there is no scored solution yet."
    score = best.scores.public or best.scores.validation
    if best.code == situation.code:
        return f"Refine: solution #{best.number} with {score} is the best so far."
    return f"Revert to #{best.number}: it scores {score}, and what came after it did not help."


def _read(file: str) -> tuple[str, ...]:
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the plays in {file} can not be read: {error}.") from error
    plays = tuple(line.strip() for line in lines if line.strip())
    if not plays:
        raise UsageError(f"{file} holds no plays: write one a line.")
    return plays
