"""The seams. Whatever has these methods fits; nothing has to be inherited.

Policies (`Implementer`, `Ideator`) hold nothing between calls: all they may know is in the
situation they are given. So a session can be continued from any recorded situation.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self, runtime_checkable

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
    terminal has `uses_terminal = True`; one that takes options names their type in `Options`.
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


class SandboxRequest(Value, frozen=True, kw_only=True):
    """What a sandbox is to be made of."""

    workspace: str
    """Host folder that agent code may write to."""
    inputs: str
    """Host folder shown read-only as `input/`."""
    masked: tuple[str, ...] = ()
    """Host paths to be hidden where the sandbox can."""
    max_output_chars: int = 20_000
    """A cell's text is cut to this, head and tail."""
    max_file_gib: float = 10.0
    threads: int = 2


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
