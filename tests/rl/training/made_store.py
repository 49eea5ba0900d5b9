"""A store of help states as the offline implementer leaves them, without running any session."""

from __future__ import annotations

from pathlib import Path
from random import Random

from mle_ideator.errors import AgentError
from mle_ideator.recipes import Column, Profile, Recipe
from mle_ideator.rl.states import StateStore
from mle_ideator.types import HelpState, Idea, Proposal
from tests.rl.made_states import Recording
from tests.rl.rollout_agents import solves

FIRST = ("model_linear", "model_boosting", "model_forest")
THEN = ("interactions", "ratios", "target_log", "clip_outliers", "tune")
ACTIONS = ("Use a random forest.", "Use gradient boosting.", "Add ratios.", "Use pca.")
FACTORS = (1.9, 0.5)
"""Of `twice`: the first one improves."""
COLUMNS = tuple(Column(name=f"x{i}", kind="number", levels=99, skew=i) for i in range(5))


def made_store(folder: Path, states: int) -> Path:
    """So many help states, no two alike."""
    with StateStore(folder / "states.db") as store:
        for number in range(states):
            recorded = _session(number).on(folder / f"run-{number}")
            assert store.add(recorded)[1]
    return folder / "states.db"


def _session(number: int) -> Recording:
    first, then = FIRST[number % len(FIRST)], THEN[number % len(THEN)]
    target = Column(name="y", kind="number", levels=900, skew=2.0, low=0.0)
    profile = Profile(rows=1000 + 10 * number, test_rows=99, columns=COLUMNS, targets=(target,))
    told = Recording().cell(text=profile.line())
    told.solved(public=1.0 + number / 100, code=Recipe(operations=(first,)).line() + "\n")
    told.solved(public=0.9, code=Recipe(operations=(first, then)).line() + "\n")
    return told.asked()


class ShortIdeas:
    """One of four ideas, by the situation's seed, in few words."""

    asked = 0
    """All calls of all instances."""

    async def propose(self, state: HelpState) -> Proposal:
        ShortIdeas.asked += 1
        action = ACTIONS[Random(state.situation.seed).randrange(len(ACTIONS))]
        return Proposal(Idea("Refine: go on.", action, "It may help."))


class Factors:
    """A better or a worse factor, by the situation's seed, for an implementer that does as told."""

    async def propose(self, state: HelpState) -> Proposal:
        factor = FACTORS[Random(state.situation.seed).randrange(len(FACTORS))]
        return Proposal(Idea("Refine: go on.", solves(factor), "It may help."))


class Nobody:
    """Never has an idea."""

    async def propose(self, state: HelpState) -> Proposal:
        return Proposal(None, "nothing left")


class Sometimes:
    """Breaks at half of its calls, the first one included."""

    calls = 0

    async def propose(self, state: HelpState) -> Proposal:
        Sometimes.calls += 1
        if Sometimes.calls % 2:
            raise AgentError("the server is gone")
        return Proposal(Idea("Refine: go on.", "Use pca.", "It may help."))
