"""When the runtime asks the ideator on the implementer's behalf.

`agent` leaves it to the implementer. `plateau-N` (or `plateau`) asks when help was not sought for N
steps and none of them brought a new best solution; `every-N` asks every N steps, stalled or not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from mle_ideator.errors import UsageError
from mle_ideator.prompts import render
from mle_ideator.types import HelpRequest, SeekHelp, Situation, Step

PLATEAU = 4
"""Steps without a gain that `plateau` waits for."""


class HelpPolicy(NamedTuple):
    """When to ask, and after how many steps."""

    kind: Literal["agent", "plateau", "every"]
    after: int = 0


def help_policy(text: str) -> HelpPolicy:
    """The policy that a text names. Raises `UsageError`."""
    found = re.fullmatch(r"(plateau|every)-([1-9]\d*)", text)
    if text == "agent":
        return HelpPolicy("agent")
    if text == "plateau":
        return HelpPolicy("plateau", PLATEAU)
    if found and found[1] == "plateau":
        return HelpPolicy("plateau", int(found[2]))
    if found:
        return HelpPolicy("every", int(found[2]))
    raise UsageError(f"{text!r} is no help policy; write agent, plateau-4 or every-3.")


def due(policy: HelpPolicy, situation: Situation) -> SeekHelp | None:
    """The request that the runtime makes now, or `None`."""
    if policy.kind == "agent" or situation.remaining.help_requests <= 0:
        return None
    quiet = _since_help(situation.trajectory)
    if len(quiet) < policy.after:
        return None
    if policy.kind == "plateau" and _gained(situation, quiet[-policy.after :]):
        return None
    return SeekHelp(request_in(situation, policy), asked_by="runtime")


def request_in(situation: Situation, policy: HelpPolicy) -> HelpRequest:
    """A request in the runtime's words, whether it is due or not."""
    quiet = _since_help(situation.trajectory)
    words = {"policy": policy, "situation": situation, "quiet": quiet}
    return HelpRequest(
        problem=render("session/request_problem", **words),
        attempts=render("session/request_attempts", **words),
        goal=render("session/request_goal", **words),
    )


def _since_help(trajectory: Sequence[Step]) -> Sequence[Step]:
    """The steps after the last help request."""
    asked = [i for i, step in enumerate(trajectory) if isinstance(step.action, SeekHelp)]
    return trajectory[asked[-1] + 1 :] if asked else trajectory


def _gained(situation: Situation, steps: Sequence[Step]) -> bool:
    """Did one of these steps make the solution that is the best now?"""
    return situation.best is not None and any(step.solution == situation.best for step in steps)
