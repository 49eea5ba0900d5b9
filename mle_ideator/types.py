"""The frozen values that the rooms hand to each other, in the words of `docs/architecture.md`.

Everything here can be written as JSON and read back (`msgspec.json`), never changes, and knows
nothing of sandboxes, models or files of its own.
"""

from __future__ import annotations

import re
from typing import Literal, TypeVar

import msgspec

N = TypeVar("N", int, float)


class Value(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of all values: immutable, comparable, strict when read."""


# ---------------------------------------------------------------------------------- scores


class Metric(Value, frozen=True):
    """A metric's name and its declared direction."""

    name: str
    higher_is_better: bool

    def score(self, value: float | None) -> Score | None:
        """The value as a score of this metric; unscored stays `None`."""
        return None if value is None else Score(value, self.higher_is_better)


class Score(Value, frozen=True):
    """A finite metric value that knows its direction: it compares *better*, not *larger*."""

    value: float
    higher_is_better: bool

    def better_than(self, other: Score | None, min_delta: float = 0.0) -> bool:
        """True if this beats `other` by more than `min_delta`. Any score beats none."""
        if other is None:
            return True
        gain = self.value - other.value
        return (gain if self.higher_is_better else -gain) > min_delta

    def __str__(self) -> str:
        return f"{self.value:.6g}"


class Scores(Value, frozen=True):
    """One solution's three scores; `None` where unscored.

    *validation* is what the solution says of itself, *public* is graded on the half of the hidden
    answers that may guide, *private* on the half that only the final report may show.
    """

    validation: Score | None = None
    public: Score | None = None
    private: Score | None = None


class Problem(Value, frozen=True):
    """One thing wrong with a submission: a stable code, and a sentence for the reader."""

    code: str
    message: str


class Grade(Value, frozen=True):
    """What the grader says of one `submission.csv`. Remarks were accepted, problems were not."""

    problems: tuple[Problem, ...] = ()
    remarks: tuple[Problem, ...] = ()
    public: Score | None = None
    private: Score | None = None

    @property
    def valid(self) -> bool:
        return not self.problems


# ------------------------------------------------------------------------------------ task


class Task(Value, frozen=True, kw_only=True):
    """One machine-learning problem, as much of it as agents may know. The answers are not here."""

    id: str
    title: str
    description: str
    """Markdown: what is predicted, the files, the columns."""
    type: str
    """For instance `tabular-regression`, `text-classification`, `forecasting`."""
    split: Literal["train", "test", "own"]
    """Whether ideators may be trained on it, are tested on it, or it is a person's own data."""
    metric: Metric
    id_column: str
    targets: tuple[str, ...]
    """Prediction columns of the submission, in the order of the sample submission."""
    prediction: Literal["value", "label", "probability"]
    """What a prediction is: a number, a class name, or the probability of a class."""
    classes: tuple[str, ...] = ()
    rows: tuple[int, int]
    """Rows of train.csv and test.csv."""
    source: str
    licence: str
    inputs: str
    """Folder with the public files, mounted read-only as `input/`."""
    masked: tuple[str, ...] = ()
    """Host paths that hold the source data; a sandbox hides them where it can."""
    baseline: Scores = Scores()
    """The trivial solution's scores."""
    public_feedback: bool = True
    """May agents see the public score of their solutions?"""
    min_delta: float = 0.0
    """The least gain that counts as better."""

    def as_agents_see_it(self) -> Task:
        """Without the baseline's private score."""
        return msgspec.structs.replace(self, baseline=Scores(public=self.baseline.public))


# --------------------------------------------------------------------------------- actions


class HelpRequest(Value, frozen=True):
    """The implementer's query to the ideator."""

    problem: str
    attempts: str
    goal: str


class Execute(Value, frozen=True, tag="execute"):
    """Run code in the sandbox."""

    language: Literal["python", "bash"]
    code: str


class SeekHelp(Value, frozen=True, tag="seek_help"):
    """Ask the ideator for one idea."""

    request: HelpRequest
    asked_by: Literal["implementer", "runtime"] = "implementer"
    """The runtime may ask on the implementer's behalf (`help_policy`)."""


class Finish(Value, frozen=True, tag="finish"):
    """End the session."""

    reason: str = ""


class Malformed(Value, frozen=True, tag="malformed"):
    """A reply from which no action could be read, and why."""

    reason: str
    text: str = ""


Action = Execute | SeekHelp | Finish | Malformed


class Usage(Value, frozen=True):
    """What model calls cost. `None` is *unknown*, never 0."""

    calls: int = 0
    input_tokens: int | None = 0
    """All of them, cached ones included."""
    cached_tokens: int | None = 0
    """Input tokens that the provider read from its cache."""
    output_tokens: int | None = 0
    """All of them, reasoning included."""
    reasoning_tokens: int | None = 0
    cost_usd: float | None = 0.0
    at_most_usd: float | None = 0.0
    """The cost, or where it is unknown its upper bound before the call; `None` without a price."""
    waited_s: float = 0.0
    """Seconds that answers took, retries included."""

    def __post_init__(self) -> None:
        if any(value is not None and not value >= 0 for value in msgspec.structs.astuple(self)):
            raise ValueError("usage can not be negative")

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.calls + other.calls,
            _plus(self.input_tokens, other.input_tokens),
            _plus(self.cached_tokens, other.cached_tokens),
            _plus(self.output_tokens, other.output_tokens),
            _plus(self.reasoning_tokens, other.reasoning_tokens),
            _plus(self.cost_usd, other.cost_usd),
            _plus(self.at_most_usd, other.at_most_usd),
            self.waited_s + other.waited_s,
        )

    @property
    def tokens(self) -> int | None:
        return _plus(self.input_tokens, self.output_tokens)

    @property
    def known(self) -> Usage:
        """As far as it is known: what a limit can be kept by."""
        values = {name: getattr(self, name) or 0 for name in self.__struct_fields__}
        return Usage(**values)


UNKNOWN_USAGE = Usage(1, None, None, None, None, None, None)
"""One call of which nothing is known."""


def _plus(a: N | None, b: N | None) -> N | None:
    return None if a is None or b is None else a + b


class Decision(Value, frozen=True):
    """What an implementer answers: one action, with its reasoning in words."""

    action: Action
    thought: str = ""
    """What the implementer says of it, kept in the trajectory."""
    reasoning: str = ""
    """What its model reasoned before, kept in the journal only."""
    ignored: tuple[str, ...] = ()
    """Further actions of the same reply, by name: only the first one is carried out."""
    usage: Usage = Usage()


# ----------------------------------------------------------------------------------- ideas

_REVERT = re.compile(
    r"^\W*revert(?:ing)?\s+to\s+(?:solution\s+)?(?:#\s*)?(\d{1,9})\b", re.IGNORECASE
)


class Idea(Value, frozen=True):
    """The ideator's structured answer (arXiv 2601.17596): what to keep, what to do, why."""

    analysis: str
    """Starts with *refine* or *revert to #k*, and says why."""
    action: str
    """What to do next, concrete and imperative."""
    rationale: str
    """Why it should help."""

    @property
    def reverts_to(self) -> int | None:
        """Number of the solution to go back to, if the analysis starts with *revert to #k*."""
        found = _REVERT.match(self.analysis)
        return int(found.group(1)) if found else None


class Proposal(Value, frozen=True):
    """What an ideator answers: an idea, or none and the reason."""

    idea: Idea | None
    reason: str = ""
    usage: Usage = Usage()
    malformed: bool = False
    """Did it answer, but with no well-formed idea?"""


# ----------------------------------------------------------------------------- what happens

Status = Literal["ok", "error", "timeout", "limit", "died"]
"""How a cell ended: `limit` is a bound other than time, at which it was stopped."""

SandboxLimit = Literal[
    "wall_time", "memory", "processes", "cpu_time", "file_size", "disk", "output"
]


class Execution(Value, frozen=True, kw_only=True):
    """What came back from one cell. `text` is output and traceback, cut to head and true tail."""

    status: Status
    text: str
    duration_s: float
    dropped_chars: int = 0
    note: str = ""
    """What the runtime adds: why it was stopped, what is gone, what still runs."""
    limits_hit: tuple[SandboxLimit, ...] = ()
    """The bounds that it ran into, whether that ended it or not."""


class Observation(Value, frozen=True, kw_only=True):
    """What the implementer sees after an action."""

    text: str
    status: Status | Literal["idea", "no_idea", "malformed_idea", "told"] = "told"
    duration_s: float = 0.0
    dropped_chars: int = 0
    limits_hit: tuple[SandboxLimit, ...] = ()


class Step(Value, frozen=True, kw_only=True):
    """One action and its observation."""

    number: int
    """Counts from 1."""
    action: Action
    observation: Observation
    thought: str = ""
    idea: Idea | None = None
    """The idea that a help request brought."""
    solution: int | None = None
    """Number of the solution that this step made."""


class Solution(Value, frozen=True, kw_only=True):
    """A validated `solution.py`, by the step that made it."""

    number: int
    """Counts from 1."""
    step: int
    code: str
    scores: Scores
    digest: str
    """SHA-256 of its submission.csv."""

    def as_agents_see_it(self, task: Task) -> Solution:
        """Without the private score, and without the public one where the task forbids it."""
        public = self.scores.public if task.public_feedback else None
        return msgspec.structs.replace(self, scores=Scores(self.scores.validation, public))


class SandboxInfo(Value, frozen=True, kw_only=True):
    """The sandbox in force: what it offers, what it keeps agents from, what it does not."""

    kind: str
    python: str
    libraries: dict[str, str]
    """Version by distribution name."""
    cores: int
    memory_gib: float
    gpus: tuple[str, ...] = ()
    """Their names, as far as known."""
    network: bool
    covers: tuple[str, ...] = ()
    does_not_cover: tuple[str, ...] = ()
    cold_start: str | None = None
    """Why kernels start from nothing; `None` where they are forks of a warm process."""


class Remaining(Value, frozen=True, kw_only=True):
    """What is left of the limits."""

    steps: int
    help_requests: int
    seconds: float
    step_seconds: float
    """The longest that the next cell may take."""
    tokens: int | None = None
    """Of models, in and out; `None` without a limit."""
    cost_usd: float | None = None
    """For models; `None` without a limit."""


class Situation(Value, frozen=True, kw_only=True):
    """Everything a policy may know when it decides. Policies keep nothing between calls."""

    task: Task
    trajectory: tuple[Step, ...]
    solutions: tuple[Solution, ...]
    best: int | None
    """Number of the best solution under the selection policy."""
    code: str | None
    """The workspace's solution.py as it stands."""
    remaining: Remaining
    sandbox: SandboxInfo
    seed: int

    @property
    def best_solution(self) -> Solution | None:
        return next((s for s in self.solutions if s.number == self.best), None)


class HelpState(Value, frozen=True):
    """The frozen situation at a help request: what an ideator answers."""

    situation: Situation
    request: HelpRequest


Outcome = Literal["finished", "steps", "time", "tokens", "cost", "interrupted", "failed"]
"""Why a session ended."""
