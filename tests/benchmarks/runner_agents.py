"""Agents for the runner's tests: quick, patient, and broken in each of the ways that matter.

What they remember lies in the folder that `RUNNER_TESTS` names, as workers are other processes.
"""

import asyncio
import os
import signal
from pathlib import Path

from mle_ideator.errors import SandboxError, UsageError
from mle_ideator.types import Decision, Execute, Finish, HelpRequest, SeekHelp

SOLUTION = """
import shutil
shutil.copy("input/sample_submission.csv", "submission.csv")
print("Validation score: 0.5")
"""
SOLVES = Execute(
    "python", f"open('solution.py', 'w').write({SOLUTION!r}); exec(open('solution.py').read())"
)
ASKS = SeekHelp(HelpRequest("what now", "nothing", "a score"))


def there(name):
    return Path(os.environ["RUNNER_TESTS"], name)


def times(name):
    """How often this was called for a name, now included."""
    file = there(name)
    with file.open("a") as calls:
        calls.write("x")
    return file.stat().st_size


class Quick:
    """Asks, solves, finishes."""

    async def act(self, situation):
        return Decision((ASKS, SOLVES, Finish())[len(situation.trajectory)])


class Waits(Quick):
    """Waits at its second step until it may go on."""

    async def act(self, situation):
        if len(situation.trajectory) == 1:
            times(f"waits-{situation.seed}")
            while not there("go").exists():  # noqa: ASYNC110 it is another process that says so
                await asyncio.sleep(0.05)
        return await super().act(situation)


class FailsTwice(Quick):
    """Its sandbox breaks at the second step, twice for each seed."""

    async def act(self, situation):
        if len(situation.trajectory) == 1 and times(f"fails-{situation.seed}") <= 2:
            raise SandboxError("the sandbox is gone")
        return await super().act(situation)


class NeverWorks:
    async def act(self, situation):
        raise RuntimeError("out\nof order")


class KillsOnce(Quick):
    """Its worker is killed at the second step, once for each seed."""

    async def act(self, situation):
        if len(situation.trajectory) == 1 and times(f"kills-{situation.seed}") == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return await super().act(situation)


class FindsTheCallWrong(Quick):
    """Only when it is at work, not when it is made."""

    async def act(self, situation):
        raise UsageError("there is no such model: name another.")


class BrokenIdeator:
    async def propose(self, state):
        raise RuntimeError("no ideas")


class AtTheTerminal(BrokenIdeator):
    uses_terminal = True


class Stubborn:
    """Does not end when it is asked to."""

    async def act(self, situation):
        times("stubborn")
        while True:
            try:
                await asyncio.sleep(600)
            except asyncio.CancelledError:
                times("asked-to-end")
