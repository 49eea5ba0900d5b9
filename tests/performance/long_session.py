"""A long session that waits for nothing: real loop, real CodeAct, a scripted model, instant cells.

Each step has a cell of 0.8 kB and an output of 2 kB; every tenth one writes a solution of 4 kB.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Any, Self

import yaml

from mle_ideator.config import RunConfig
from mle_ideator.ideators.null import NullIdeator
from mle_ideator.implementers.codeact import CodeActImplementer
from mle_ideator.journal import FILE, Event, Journal, Stepped
from mle_ideator.limits import Limits
from mle_ideator.messages import CallOptions, Completion, Message
from mle_ideator.protocols import ChatModel, SandboxRequest
from mle_ideator.session import run_session
from mle_ideator.setups import Setup
from mle_ideator.types import Execute, Execution, Grade, Metric, SandboxInfo, Scores, Task

METRIC = Metric("rmse", higher_is_better=False)


@dataclass
class Watch:
    """What the parts of a session took, in seconds, and what was sent to the model."""

    clock: Callable[[], float] = perf_counter
    requests: list[Sequence[Message]] = field(default_factory=list)
    elsewhere_s: float = 0.0
    """In the model, in cells, in grading."""
    overheads_s: list[float] = field(default_factory=list)
    """Of each step: all but that."""
    _since: float = 0.0

    @contextmanager
    def elsewhere(self):
        start = self.clock()
        yield
        self.elsewhere_s += self.clock() - start

    def __call__(self, event: Event) -> None:
        """A step is over."""
        if isinstance(event, Stepped):
            now = self.clock()
            self.overheads_s.append(now - self._since - self.elsewhere_s)
            self._since, self.elsewhere_s = now, 0.0


@dataclass
class Watched:
    """A chat model whose requests are kept and whose time is not counted."""

    model: ChatModel
    watch: Watch

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    async def complete(
        self, messages: Sequence[Message], options: CallOptions = CallOptions()
    ) -> Completion:
        with self.watch.elsewhere():
            self.watch.requests.append(messages)
            return await self.model.complete(messages, options)


class InstantSandbox:
    """Runs nothing: what looks like a solution is written, the output is made up."""

    info = SandboxInfo(
        kind="instant",
        python="3.12",
        libraries={"pandas": "3.0"},
        cores=2,
        memory_gib=8,
        network=False,
    )

    def __init__(self, request: SandboxRequest, watch: Watch) -> None:
        self.folder, self.watch, self.cells = Path(request.workspace), watch, 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        return None

    async def execute(self, action: Execute, timeout_s: float) -> Execution:
        with self.watch.elsewhere():
            self.cells += 1
            if "solution.py" in action.code:
                code = action.code.split("<<'EOF'\n")[-1].split("EOF\n")[0]
                (self.folder / "solution.py").write_text(code)
                (self.folder / "submission.csv").write_text(f"id,y\n1,{self.cells}\n")
            return Execution(status="ok", text=output(self.cells), duration_s=1.5)


class InstantGrader:
    """Accepts everything, each time with a better score."""

    max_bytes = 1_000_000

    def __init__(self, watch: Watch) -> None:
        self.watch, self.graded = watch, 0

    def grade(self, submission: Path) -> Grade:
        with self.watch.elsewhere():
            self.graded += 1
            score = METRIC.score(1 / self.graded)
            return Grade(public=score, private=score)


def output(number: int) -> str:
    """2 kB, half numbers and half words."""
    rows = "".join(f"{i:3} fold {i} of run {number}: {number / 7 + i:.4f}\n" for i in range(70))
    return f"{rows[:2000]}\nValidation score: {1 / number:.6f}"


def reply(number: int) -> str:
    """What the model says at a step."""
    if number % 10 == 0:
        line = f"frame['column_{number // 10}'] = cleaned(frame, 'column')\n"
        script = f"cat > solution.py <<'EOF'\n{line * 80}EOF\npython solution.py"
        return f"I write solution {number}.\n\n<execute_bash>\n{script}\n</execute_bash>"
    code = "".join(f"frame['r_{number}_{i}'] = frame['a{i}'] / frame['b']\n" for i in range(17))
    thought = f"I look at the ratios for the {number}th time."
    return f"{thought}\n\n<execute_python>\n{code}</execute_python>"


async def play(
    folder: Path, steps: int, budget: int, clock: Callable[[], float] = perf_counter
) -> Watch:
    """Play a session of so many steps in a new folder."""
    watch, inputs, script = Watch(clock), folder / "inputs", folder / "replies.yaml"
    inputs.mkdir()
    (inputs / "train.csv").write_text("id,x,y\n" + "".join(f"{i},{i},{i}\n" for i in range(99)))
    script.write_text(yaml.safe_dump([reply(number) for number in range(1, steps + 1)]))
    implementer = CodeActImplementer(
        f"scripted:{script}", CodeActImplementer.Options(context_tokens=budget)
    )
    implementer.model = Watched(implementer.model, watch)
    setup = Setup(
        task=task(str(inputs)),
        grader=InstantGrader(watch),
        implementer=implementer,
        ideator=NullIdeator(),
        sandbox=lambda request: InstantSandbox(request, watch),
        folder=folder,
        config=RunConfig(limits=Limits(steps=steps)),
    )
    with Journal(folder / FILE, [watch]) as journal:
        await run_session(setup, journal)
    return watch


async def play_somewhere(
    steps: int, budget: int, clock: Callable[[], float] = perf_counter
) -> Watch:
    """Play a session and leave nothing behind."""
    with tempfile.TemporaryDirectory() as folder:
        return await play(Path(folder), steps, budget, clock)


def task(inputs: str) -> Task:
    return Task(
        id="houses",
        title="House prices",
        description="Predict the price of each house from what is known of it. " * 60,
        type="tabular-regression",
        split="own",
        metric=METRIC,
        id_column="id",
        targets=("y",),
        prediction="value",
        rows=(99, 99),
        source="made up",
        licence="Apache-2.0",
        inputs=inputs,
        baseline=Scores(public=METRIC.score(2.0)),
    )
