"""Help states on disk, written by hand: journals event by event, workspaces by real snapshots."""

from __future__ import annotations

import msgspec

from mle_ideator.config import RunConfig
from mle_ideator.journal import (
    FILE,
    Asked,
    Decided,
    Journal,
    Rejected,
    Rerun,
    Resumed,
    Solved,
    Started,
    Stepped,
    Warned,
)
from mle_ideator.sandboxes.workspaces.tracked import TrackedWorkspace
from mle_ideator.types import (
    Decision,
    Execute,
    Grade,
    HelpRequest,
    Idea,
    Metric,
    Observation,
    Problem,
    Remaining,
    SandboxInfo,
    Score,
    Scores,
    SeekHelp,
    Solution,
    Step,
    Task,
    Usage,
)

TASK = Task(
    id="tiny",
    title="Twice as much",
    description="Predict y from x.",
    type="tabular-regression",
    split="train",
    metric=Metric("rmse", higher_is_better=False),
    id_column="id",
    targets=("y",),
    prediction="value",
    rows=(20, 20),
    source="made by the tests",
    licence="Apache-2.0",
    inputs="/home/somebody/cache/tiny/public",
    masked=("/home/somebody/cache/tiny/private",),
    baseline=Scores(public=Score(20.0, False), private=Score(21.0, False)),
)
SANDBOX = SandboxInfo(
    kind="local", python="3.11", libraries={"numpy": "2"}, cores=2, memory_gib=8, network=True
)
IDEA = Idea("Refine: go on.", "Use ratios.", "They help.")
OTHER = Idea("Refine: go on.", "Use logarithms.", "They help.")
CODE = "print('Validation score: 1')\n"
REQUEST = HelpRequest("stuck", "two attempts", "a better score")


class Recording:
    """A session's events, one after the other; each takes `pace` seconds."""

    def __init__(self, pace=1.0, config=None, task=TASK, sandbox=SANDBOX, usage=None):
        self.pace, self.usage = pace, usage or Usage()
        self.steps = self.solutions = 0
        self.code = None
        values = {"task": "tiny", "implementer": "offline", **(config or {})}
        self.events = [
            Started(
                version="0.1.0",
                started_at=f"2026-01-01T00:00:{int(pace):02d}+00:00",
                config=msgspec.to_builtins(RunConfig(**values)),
                task=task,
                sandbox=sandbox,
            )
        ]

    @property
    def now(self):
        return self.pace * len(self.events)

    def cell(self, code="look()", text="seen", status="ok", thought="so", rejected=False):
        self._decide(Execute("python", code), thought)
        if rejected:
            grade = Grade(problems=(Problem("rows", "too few"),), private=Score(9.0, False))
            self.events.append(Rejected(at_s=self.now, step=self.steps + 1, grade=grade))
        return self._step(Execute("python", code), thought, text, status)

    def solved(self, public=1.0, private=1.5, code=CODE, text="Validation score: 1", best=True):
        self._decide(Execute("python", code), "so")
        self.solutions += 1
        self.code = code
        scores = [None if value is None else Score(value, False) for value in (public, private)]
        solution = Solution(
            number=self.solutions,
            step=self.steps + 1,
            code=code,
            scores=Scores(Score(1.0, False), *scores),
            digest="0" * 64,
        )
        self.events.append(Solved(at_s=self.now, solution=solution, best=best))
        return self._step(Execute("python", code), "so", text, "ok", solution=self.solutions)

    def asked(self, request=REQUEST, by="implementer"):
        self._decide(SeekHelp(request, asked_by=by), "help")
        left = Remaining(steps=9, help_requests=3, seconds=self.now, step_seconds=self.now)
        step = self.steps + 1
        self.events.append(
            Asked(at_s=self.now, step=step, request=request, code=self.code, remaining=left)
        )
        return self

    def advised(self, idea=IDEA, request=REQUEST):
        self.asked(request)
        return self.answered(idea, request)

    def answered(self, idea=IDEA, request=REQUEST):
        return self._step(SeekHelp(request), "help", idea.action, "idea", idea=idea)

    def resumed(self, sandbox=SANDBOX):
        self.events.append(
            Resumed(
                at_s=self.now,
                resumed_at=f"2027-01-01T00:00:{int(self.pace):02d}+00:00",
                sandbox=sandbox,
            )
        )
        self.events.append(Warned(at_s=self.now, message="the rows were read twice"))
        return self

    def rerun(self):
        scores = Scores(public=Score(1.0, False), private=Score(1.5, False))
        self.events.append(Rerun(at_s=self.now, solution=1, reproduced=True, scores=scores))
        return self

    def on(self, folder):
        """Write the journal into a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        with Journal(folder / FILE) as journal:
            for event in self.events:
                journal.append(event)
        return folder

    def _decide(self, action, thought):
        decision = Decision(action, thought=thought, usage=self.usage)
        self.events.append(Decided(at_s=self.now, step=self.steps + 1, decision=decision))

    def _step(self, action, thought, text, status, *, idea=None, solution=None):
        self.steps += 1
        observation = Observation(text=text, status=status, duration_s=self.pace)
        step = Step(
            number=self.steps,
            action=action,
            thought=thought,
            observation=observation,
            idea=idea,
            solution=solution,
        )
        self.events.append(Stepped(at_s=self.now, step=step, ideator_usage=self.usage))
        return self


def snapshot(files, folder, workspace):
    """A real snapshot of a workspace with these files; content by path."""
    for path, content in files.items():
        (workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace / path).write_bytes(content)
    workspace.mkdir(exist_ok=True)
    tracked = TrackedWorkspace(workspace)
    tracked.open(None) if not files else None
    tracked.snapshot(folder)
    return folder


FILES = {
    "solution.py": CODE.encode(),
    "submission.csv": b"id,y\nb0,1\n" * 400,
    "features/random.bin": bytes(range(256)) * 9,
    "notes/deep/er.txt": b"kept",
}
