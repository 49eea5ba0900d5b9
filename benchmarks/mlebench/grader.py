"""CompetitionGrader: a competition's own grade function as a grader of ours.

There is no public part: mle-bench allows to ask whether a submission is valid, never for a score,
so all of the score is private.

A competition's graders raise for most things that are wrong with a submission, often by a failed
assertion. So whose fault an exception is, is told by the sample submission: if that is graded, the
grader works, and what it failed on is the submission's problem; if not, the grader is broken.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from mle_ideator.benchmarks.grading.files import Refused, read_regular_file
from mle_ideator.benchmarks.leaderboards import DECIMALS, Rule
from mle_ideator.benchmarks.mlebench.competitions import Competition
from mle_ideator.benchmarks.mlebench.form import Form, Looked, form_of
from mle_ideator.benchmarks.mlebench.judging import MEMORY_GIB, SECONDS, Verdict, judge
from mle_ideator.errors import GradingError
from mle_ideator.types import Grade, Metric, Problem

_SAID = {
    "refused": ("refused", "the competition's grader refuses it as invalid"),
    "failed": ("refused", "the competition's grader can not grade it"),
    "unscored": ("unscored", "the competition's grader gives no finite number for it"),
    "limit": ("grading_limit", "the competition's grader {why} on it"),
}


class CompetitionGrader:
    """Grades by the rule `mlebench`: whatever the competition's grader takes is valid, and what
    is unlike the sample is remarked; or `strict`: what is unlike the sample is not valid, and
    rows and columns are put into the sample's order before they are graded.

    Raises `GradingError` from `grade` if the grader is broken; never for a submission.
    """

    def __init__(
        self,
        competition: Competition,
        metric: Metric,
        rule: Rule = "mlebench",
        seconds: float = SECONDS,
        memory_gib: float = MEMORY_GIB,
    ) -> None:
        self._competition, self._metric, self._rule = competition, metric, rule
        self._seconds, self._memory_gib = seconds, memory_gib

    @cached_property
    def form(self) -> Form:
        return form_of(self._competition.sample)

    @property
    def max_bytes(self) -> int:
        """A larger submission is refused unread."""
        return self.form.max_bytes

    def grade(self, submission: Path) -> Grade:
        """Validate and score one submission, for all hidden answers together."""
        try:
            data = read_regular_file(submission, self.max_bytes)
        except Refused as refused:
            return Grade(tuple(refused.problems))
        looked = self.form.look_at(data)
        if self._rule == "strict":
            if looked.problems:
                return Grade(tuple(looked.problems), tuple(looked.remarks))
            data = looked.canonical
        return self._graded(self._judge(data), looked)

    @cached_property
    def of_the_sample(self) -> Verdict:
        """Raises `GradingError` if the grader can not even be loaded."""
        return self._judge(self._competition.sample.read_bytes())

    def _graded(self, verdict: Verdict, looked: Looked) -> Grade:
        if verdict.outcome == "score":
            accepted = [_accepted(problem) for problem in looked.problems]
            score = self._metric.score(self._rounded(verdict.value))
            return Grade((), (*looked.remarks, *accepted), None, score)
        if not looked.problems and verdict.outcome in ("failed", "limit"):
            self._require_working(verdict)
        code, message = _SAID[verdict.outcome]
        said = Problem(code, f"{message.format(why=verdict.why)}. {_ADVICE}")
        return Grade((*looked.problems, said), tuple(looked.remarks))

    def _rounded(self, value: float | None) -> float | None:
        """mle-bench's graders round before anything is compared."""
        if value is None or self._rule == "strict":
            return value
        return round(value, DECIMALS)

    def _require_working(self, verdict: Verdict) -> None:
        """A grader that fails on the sample too is broken, or too slow for its limits."""
        sample = self.of_the_sample
        if sample.outcome in ("failed", "limit"):
            raise GradingError(
                f"the grader of {self._competition.id} fails on a submission of the sample's form "
                f"({verdict.why}), and on the sample submission itself ({sample.why})"
            )

    def _judge(self, data: bytes) -> Verdict:
        verdict = judge(self._competition, data, self._seconds, self._memory_gib)
        if verdict.outcome == "broken":
            raise GradingError(
                f"the grader of {self._competition.id} can not be used: {verdict.why}; install "
                "what it imports, or name another Python in MLE_IDEATOR_MLEBENCH_PYTHON"
            )
        return verdict


_ADVICE = "Write the columns and rows of the sample submission, with predictions of their kind."


def _accepted(problem: Problem) -> Problem:
    return Problem(problem.code, f"{problem.message} (mle-bench accepts it all the same.)")
