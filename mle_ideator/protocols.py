"""The seams. Whatever has these methods fits; nothing has to be inherited.

Policies (`Implementer`, `Ideator`) hold nothing between calls: all they may know is in the
situation they are given. So a session can be continued from any recorded situation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self, runtime_checkable

from mle_ideator.errors import UsageError
from mle_ideator.messages import CallOptions, Completion, Message
from mle_ideator.types import (
    Decision,
    Execute,
    Execution,
    Grade,
    HelpState,
    Proposal,
    SandboxInfo,
    Situation,
    Task,
    Value,
)


@runtime_checkable
class ChatModel(Protocol):
    """A language model that answers messages.

    It may remember what it learned of the model (a refused parameter, the size of the context),
    never of a conversation. One that holds connections has `async def aclose(self)` besides.
    """

    @property
    def name(self) -> str:
        """The spec that names it, for instance `openai:gpt-5`."""
        ...

    @property
    def context_tokens(self) -> int | None:
        """Input and output together, as far as known."""
        ...

    @property
    def priced(self) -> bool:
        """Is its price known, so that a cap on cost can be kept? Local models cost nothing."""
        ...

    async def complete(
        self, messages: Sequence[Message], options: CallOptions = CallOptions()
    ) -> Completion:
        """One answer, transient failures retried.

        Raises `ContextOverflow`, `OutOfBudget`, or another `AgentError`.
        """
        ...


@runtime_checkable
class Implementer(Protocol):
    """The acting agent. Raises `AgentError` if it is itself broken (a lost server, say).

    An agent that holds connections has `async def aclose(self)` besides; one that reads from the
    terminal has `uses_terminal = True`; one that takes options names their type in `Options`. One
    that does not heed every word of an idea has `def gist(self, idea) -> str` besides: ideas with
    the same gist it carries out alike, so that one rollout tells of all of them.
    """

    async def act(self, situation: Situation) -> Decision: ...


@runtime_checkable
class Ideator(Protocol):
    """The advising agent. Raises `AgentError` if it is itself broken; a bad idea is no error."""

    async def propose(self, state: HelpState) -> Proposal: ...


@runtime_checkable
class Sandbox(Protocol):
    """Where agent code runs: one kernel, one workspace, from `async with` to its end.

    Code runs with the workspace as working directory, sees the task's files as `input/`, and
    writes `solution.py` and `submission.csv` beside it. A failed cell is an `Execution`; only a
    broken sandbox raises (`SandboxError`).
    """

    @property
    def info(self) -> SandboxInfo: ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

    async def execute(self, action: Execute, timeout_s: float) -> Execution:
        """Run one cell; it ends within `timeout_s` plus a few seconds, whatever it does."""
        ...

    async def snapshot(self, folder: Path) -> None:
        """Keep the workspace, without its inputs, as a new `folder` that is never changed again.

        Takes time and space for what has changed since the last snapshot or restoring.
        """
        ...

    async def restore(self, folder: Path) -> None:
        """Make the workspace what it was at a snapshot, and start a new kernel.

        Variables, background jobs, home and temporary files are gone.
        """
        ...


class SandboxLimits(Value, frozen=True, kw_only=True):
    """What agent code may use at most, all its processes together. Refuses what is not above 0."""

    memory_gib: float | None = None
    """Without it, three quarters of this machine's."""
    processes: int = 1024
    """Threads included."""
    cpus: float | None = None
    """Cores' worth of time; without it, all."""
    cpu_s: float | None = None
    """Seconds of processor time in the whole life of the sandbox."""
    file_gib: float = 10.0
    """Of one file."""
    disk_gib: float = 20.0
    """Workspace, home and temporary files together, without the inputs."""
    output_chars: int = 20_000
    """A cell's text is cut to this, head and tail."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise UsageError(f"sandbox limit {name!r} must be more than 0, and finite.")


PRELOADED = (
    *("numpy", "pandas", "scipy.stats", "scipy.sparse", "joblib", "sklearn.compose"),
    *("sklearn.ensemble", "sklearn.feature_extraction.text", "sklearn.impute"),
    *("sklearn.linear_model", "sklearn.metrics", "sklearn.model_selection", "sklearn.pipeline"),
    *("sklearn.preprocessing", "lightgbm", "xgboost"),
)
"""Modules that solutions use and that take long to import."""


class SandboxRequest(Value, frozen=True, kw_only=True):
    """What a sandbox is to be made of."""

    workspace: str
    """Host folder that agent code may write to."""
    inputs: str
    """Host folder shown read-only as `input/`."""
    masked: tuple[str, ...] = ()
    """Host paths to be hidden where the sandbox can."""
    limits: SandboxLimits = SandboxLimits()
    threads: int = 2
    """The share of the cores: what numerical libraries are told to use."""
    gpus: str | None = None
    """`all`, none (`""`), or ids with commas between them; without it, what the sandbox gives."""
    preload: tuple[str, ...] = PRELOADED
    """Modules that are there at once; those that are not installed are left out."""
    snapshot: str | None = None
    """A folder that `Sandbox.snapshot` made: what the workspace, which must be empty, holds."""
    keep: tuple[str, ...] | None = None
    """With `snapshot`: names in the workspace that are to be there after the end, at least; without
    it, all, which may take as long as copying them."""


class SandboxFactory(Protocol):
    """A class of sandboxes, as the registry finds it.

    One that takes options names their type in `Options` and has a class method
    `configured(argument, options)` that returns such a factory; `argument` is what stands after
    the colon of the spec, or `None`.
    """

    def __call__(self, request: SandboxRequest) -> Sandbox: ...

    def unavailable(self) -> str | None:
        """Why it can not work on this machine and how to mend that, or `None`."""
        ...


@runtime_checkable
class Grader(Protocol):
    """Validates and scores a submission. Messages tell nothing of the answers."""

    @property
    def max_bytes(self) -> int:
        """A larger file is no submission; it need not be read."""
        ...

    def grade(self, submission: Path) -> Grade: ...


class TaskCard(Value, frozen=True, kw_only=True):
    """What is listed of a task before it is built."""

    id: str
    title: str
    type: str
    split: str
    metric: str
    higher_is_better: bool
    rows: tuple[int, int]
    source: str
    licence: str


@runtime_checkable
class TaskSource(Protocol):
    """Where tasks come from. Raises `TaskError` for a task it does not have or can not build."""

    def cards(self) -> Sequence[TaskCard]: ...

    def load(self, task_id: str) -> tuple[Task, Grader]: ...
