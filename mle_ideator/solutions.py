"""Validated solutions: capturing them, choosing the best, going back to one."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import unified_diff
from pathlib import Path

from mle_ideator.files import Signature, read_regular, replace_file, signature
from mle_ideator.protocols import Grader
from mle_ideator.types import Grade, Metric, Problem, Score, Scores, Solution

SOLUTION = "solution.py"
SUBMISSION = "submission.csv"
MAX_CODE = 2_000_000
MOST_COMPARED = 2_000
"""Lines of two codes: what comparing takes grows with their product."""
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?"
_VALIDATION = re.compile(rf"^\W*validation score:\s*({_NUMBER})\s*$", re.IGNORECASE | re.MULTILINE)


def validation_score(text: str, metric: Metric) -> Score | None:
    """The last `Validation score: <number>` line of an output; NaN and infinity are no scores."""
    found = _VALIDATION.findall(text)
    value = float(found[-1]) if found else math.nan
    return metric.score(value) if math.isfinite(value) else None


class Workspace:
    """The two files by which agents are judged, watched for being written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._seen = self._signature()

    def _signature(self) -> Signature | None:
        return signature(self.folder / SUBMISSION)

    def submission_written(self) -> bool:
        """Was submission.csv written since the last time this was asked?"""
        before, self._seen = self._seen, self._signature()
        return self._seen is not None and self._seen != before

    @contextmanager
    def touched_by_the_runtime(self) -> Iterator[None]:
        """What changes meanwhile was not written by agents; what they wrote before still was."""
        written = self.submission_written()
        yield
        self._seen = None if written else self._signature()

    @property
    def code(self) -> str | None:
        content = read_regular(self.folder / SOLUTION, MAX_CODE)
        return None if content is None else content.decode("utf-8", errors="replace")

    def restore(self, code: str) -> None:
        """Put an earlier solution.py back. Raises `OSError` if agent code made that impossible."""
        replace_file(self.folder / SOLUTION, code.encode())


def kept_workspace(run: Path, step: int) -> Path:
    """Where a session keeps the workspace of the help request at a step (`keep_help_states`)."""
    return run / "help_states" / f"{step:03d}"


class Solutions:
    """The solutions of a session, each kept in a folder of its own.

    Grading sees only the copy, so nothing that still runs in the workspace can change what was
    graded.
    """

    def __init__(self, folder: Path, grader: Grader, metric: Metric) -> None:
        self._folder = folder
        self._grader = grader
        self._metric = metric

    def capture(
        self, workspace: Workspace, number: int, step: int, output: str
    ) -> tuple[Solution | None, Grade]:
        """Grade what a step left in the workspace; a solution if it is valid."""
        code = workspace.code
        if not code or not code.strip():
            message = f"{SUBMISSION} was written, but there is no readable {SOLUTION} beside it"
            return None, Grade(problems=(Problem("no_solution", message),))
        content = read_regular(workspace.folder / SUBMISSION, self._grader.max_bytes)
        if content is None:
            # What it is instead, the grader says best.
            return None, self._refused(workspace.folder / SUBMISSION)
        folder = self.folder(number)
        folder.mkdir(parents=True, exist_ok=True)
        replace_file(folder / SUBMISSION, content)
        grade = self._grader.grade(folder / SUBMISSION)
        if not grade.valid:
            return None, grade
        replace_file(folder / SOLUTION, code.encode())
        scores = Scores(validation_score(output, self._metric), grade.public, grade.private)
        digest = hashlib.sha256(content).hexdigest()
        return Solution(number=number, step=step, code=code, scores=scores, digest=digest), grade

    def folder(self, number: int) -> Path:
        return self._folder / f"{number:03d}"

    def _refused(self, path: Path) -> Grade:
        grade = self._grader.grade(path)
        if grade.valid:
            unreadable = Problem("unreadable", f"{SUBMISSION} changed while it was being read")
            return Grade(problems=(unreadable,))
        return grade


def score_for(solution: Solution, selection: str) -> Score | None:
    """The score by which a selection policy compares solutions."""
    scores = solution.scores
    return scores.public if selection == "public" else scores.validation


def beats(new: Solution, old: Solution | None, selection: str, min_delta: float = 0.0) -> bool:
    """Does a policy prefer the newer solution? An unscored one never beats a scored one."""
    if old is None:
        return True
    if selection == "last":
        return new.number > old.number
    score = score_for(new, selection)
    return score is not None and score.better_than(score_for(old, selection), min_delta)


def ranked(solutions: Sequence[Solution], selection: str, min_delta: float = 0.0) -> list[Solution]:
    """Best first, under a policy; among equals the earlier comes first."""
    order: list[Solution] = []
    for solution in solutions:
        place = next(
            (i for i, old in enumerate(order) if beats(solution, old, selection, min_delta)),
            len(order),
        )
        order.insert(place, solution)
    return order


def way_back(code: str, best: str) -> str:
    """How going back to the best code would change the code as it stands, as a unified diff.

    Empty if nothing would, or if they are too long to be compared in a moment.
    """
    before, after = code.splitlines(), best.splitlines()
    if max(len(before), len(after)) > MOST_COMPARED:
        return ""
    return "\n".join(list(unified_diff(before, after, lineterm="", n=1))[2:])
