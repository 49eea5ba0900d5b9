"""FileGrader: a submission against a file of hidden answers."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from mle_ideator.benchmarks.grading.answers import PARTS, Answers, Part, load_answers
from mle_ideator.benchmarks.grading.formulas import Array
from mle_ideator.benchmarks.grading.metrics import UNIT, Beside, evaluate, metric_named
from mle_ideator.benchmarks.grading.validation import Wanted, check
from mle_ideator.errors import GradingError, UsageError
from mle_ideator.types import Grade, Problem, Score


class FileGrader:
    """Validates and scores submissions against `answers.csv`.

    The answers have the id column, the target columns and `part`: `public` and `private` rows are
    scored apart, `ignore` rows must be predicted and are not scored. They also have the columns
    `event` (1 where a time ended in the event, 0 where it was cut short) and `group` (rows with
    equal values are ranked among each other), if these are named. A submission has the id and

        value, label               the targets
        probability, two classes   the target: probability of the second class
        probability, more classes  a column for each of `classes`
        probability, many targets  the targets: probability that the label is 1

    `classes` are in their order; without them those of the answers are taken, sorted. More than
    two classes of probabilities and ordinal metrics need them declared.

    Raises `UsageError` if metric, prediction, targets and classes do not fit together, and
    `GradingError` from `grade` if the answers or the metric are broken; never for a submission.
    The answers are read at the first use and kept.
    """

    def __init__(
        self,
        answers: Path,
        *,
        metric: str,
        id_column: str,
        targets: tuple[str, ...],
        prediction: str,
        classes: tuple[str, ...] = (),
        event: str | None = None,
        group: str | None = None,
    ) -> None:
        self.spec = metric_named(metric)
        self._path = answers
        self._id_column = id_column
        self._targets = tuple(targets)
        self._classes = tuple(classes)
        named: dict[Beside, str | None] = {"event": event, "group": group}
        self._beside = {what: column for what, column in named.items() if column is not None}
        self._require_fit(prediction)

    def _require_fit(self, prediction: str) -> None:
        spec, many = self.spec, len(self._targets) > 1
        if prediction != spec.prediction:
            raise UsageError(f"{spec.name} scores a {spec.prediction}, not a {prediction}")
        if not self._targets or spec.targets == ("one" if many else "many"):
            raise UsageError(f"{spec.name} takes {spec.targets} target column")
        if spec.needs == "two classes" and len(self._classes) > 2:
            raise UsageError(f"{spec.name} takes two classes, not {len(self._classes)}")
        if spec.needs == "ordinal" and not self._classes:
            raise UsageError(f"{spec.name} needs the classes declared, in their order")
        if spec.beside and spec.beside not in self._beside:
            raise UsageError(f"{spec.name} needs the {spec.beside} column of the answers named")

    @property
    def columns(self) -> tuple[str, ...]:
        """The prediction columns that a submission must have."""
        by_class = self.spec.prediction == "probability" and len(self._targets) == 1
        return self._classes if by_class and len(self._classes) > 2 else self._targets

    @property
    def max_bytes(self) -> int:
        """A larger submission is refused unread."""
        return self._wanted.max_bytes

    def grade(self, submission: Path) -> Grade:
        """Validate and score one submission."""
        checked = check(submission, self._wanted)
        if checked.predictions is None:
            return Grade(tuple(checked.problems), tuple(checked.remarks))
        scores = {part: self._score(part, checked.predictions, checked.remarks) for part in PARTS}
        return Grade((), tuple(checked.remarks), scores["public"], scores["private"])

    def _score(self, part: Part, predictions: Array, remarks: list[Problem]) -> Score | None:
        rows = self._answers.rows[part]
        if not len(rows):
            return None
        try:
            truth, beside = self._answers.truth[part], self._answers.beside[part]
            value, reason = evaluate(self.spec, truth, predictions[rows], beside)
        except Exception as error:
            kind = type(error).__name__  # its text could quote answers
            raise GradingError(f"{self.spec.name} failed on the {part} part ({kind})") from error
        if value is None:
            message = f"{self.spec.name} is not defined on the {part} part: {reason}."
            remarks.append(Problem("unscored", message))
        return self.spec.metric.score(value)

    @cached_property
    def _answers(self) -> Answers:
        answers = load_answers(
            *(self._path, self.spec, self._id_column, self._targets, self._classes, self._beside)
        )
        if answers.classes and not self._classes and len(answers.classes.names) > 2:
            if self.spec.needs == "two classes":
                raise GradingError(f"{self.spec.name} takes two classes; the answers have more")
            if self.spec.prediction == "probability":
                raise GradingError("probabilities of several classes need the classes declared")
        return answers

    @cached_property
    def _wanted(self) -> Wanted:
        return Wanted(
            self._id_column,
            self.columns,
            self._answers.ids,
            self.spec.prediction,
            self.spec.bounds,
            self._answers.classes,
            sums_to_one=self.spec.bounds == UNIT and self.columns != self._targets,
        )
