"""What can go wrong, and whose fault it is.

    MleIdeatorError            everything raised on purpose
    ├── UsageError             the call was wrong (exit code 2): config, options, specs
    │   └── TaskError          the task or the data is unknown or unusable
    └── RuntimeFailure         the runtime itself failed (exit code 3)
        ├── SandboxError       the sandbox broke; agent code that fails is no error
        ├── AgentError         an agent broke: a lost server, an exhausted retry budget
        │   ├── AgentTimeout       it did not answer in the time that it had
        │   ├── ContextOverflow    the model can not read that much: shrink, then ask again
        │   └── OutOfBudget        the next call could pass the cap on cost: it was not made
        └── GradingError       the grader broke; a wrong submission is no error

A bad idea, a failed cell and a wrong submission are *data*, never exceptions. Messages say in one
line what happened, why, and what to do.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any


class MleIdeatorError(Exception):
    """Everything raised on purpose."""


class UsageError(MleIdeatorError):
    """The call was wrong."""


class TaskError(UsageError):
    """The task or the data is unknown or unusable."""


class RuntimeFailure(MleIdeatorError):
    """The runtime itself failed."""


class SandboxError(RuntimeFailure):
    """The sandbox broke, not the code in it."""


class AgentError(RuntimeFailure):
    """An agent broke, not its answer."""

    usage: Any = None
    """`types.Usage` of what was tried before and may be charged, if a model was asked."""


class AgentTimeout(AgentError):
    """It did not answer in the time that it had."""


class ContextOverflow(AgentError):
    """The model can not read that much."""


class OutOfBudget(AgentError):
    """The next model call could cost more than is left; it was not made."""


class GradingError(RuntimeFailure):
    """The grader broke, not the submission."""


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """One line for a name that does not exist, with the nearest one that does."""
    names = sorted(known)
    near = get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(names)}."
    return f"unknown {what} {name!r}; {hint}"
