"""A competition as a task, and its grader. What takes time to find out is cached."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

from mle_ideator.benchmarks.cache import built_once
from mle_ideator.benchmarks.leaderboards import Rule
from mle_ideator.benchmarks.mlebench.competitions import CONFIG, Competition, find_competition
from mle_ideator.benchmarks.mlebench.declaring import metric_of
from mle_ideator.benchmarks.mlebench.facts import TEST, TRAIN, Facts, facts_of
from mle_ideator.benchmarks.mlebench.grader import CompetitionGrader
from mle_ideator.errors import GradingError, TaskError
from mle_ideator.protocols import Grader
from mle_ideator.types import Metric, Scores, Task, Value

FACTS = "facts.json"
_CODE = (
    *("assembling.py", "facts.py", "form.py", "judge.py"),
    *("competitions.py", "declaring.py", "corrections.yaml"),
)
"""What the facts depend on."""
RULES = """
# The rules of MLE-bench

Train a model on the training data; do not label test rows by hand, and do not use other people's
solutions to this competition. You are told whether a submission is valid, never its score.
{sample}"""


class _Known(Value, frozen=True):
    facts: Facts
    baseline: float | None
    """The sample submission's score."""


def load(path: str, rule: Rule) -> tuple[Task, Grader]:
    """The competition `DATA/ID`. Its grader is tried once, on the sample submission.

    Raises `TaskError` if data, registry entry or grader can not be used.
    """
    competition = find_competition(path)
    metric = metric_of(competition)
    grader = CompetitionGrader(competition, metric, rule)
    folder = built_once(
        f"mlebench-{competition.id}-{_key(competition)}",
        lambda folder: _find_out(competition, grader, folder / FACTS),
        lambda folder: _read(folder) is not None,
    )
    known = _read(folder)
    if known is None:
        raise TaskError(f"{folder / FACTS} can not be read; delete the folder")
    return _task(competition, metric, known), grader


def _find_out(competition: Competition, grader: CompetitionGrader, file: Path) -> None:
    try:
        verdict = grader.of_the_sample
    except GradingError as error:
        raise TaskError(str(error)) from error
    baseline = verdict.value if verdict.outcome == "score" else None
    file.write_bytes(msgspec.json.encode(_Known(facts_of(competition, grader.form), baseline)))


def _read(folder: Path) -> _Known | None:
    try:
        return msgspec.json.decode((folder / FACTS).read_bytes(), type=_Known)
    except (OSError, msgspec.DecodeError):
        return None


def _key(competition: Competition) -> str:
    """By sizes and times of files, as the data may be hundreds of gigabytes."""
    public, entry = competition.public, competition.entry
    data = [competition.sample, competition.answers, public / TRAIN, public / TEST]
    named = [entry / CONFIG, *sorted(entry.glob("*.py"))]
    own = [Path(__file__).with_name(name) for name in _CODE]
    total = hashlib.sha256(repr(competition.own).encode())
    for file in (*data, *named, *own):
        if file.is_file():
            status = file.stat()
            total.update(f"{file}:{status.st_size}:{status.st_mtime_ns}\n".encode())
    return total.hexdigest()[:12]


def _task(competition: Competition, metric: Metric, known: _Known) -> Task:
    facts = known.facts
    return Task(
        id=competition.id,
        title=competition.config.name,
        description=_description(competition),
        type=facts.type,
        split=competition.own.split,
        metric=metric,
        id_column=facts.id_column,
        targets=facts.targets,
        prediction=facts.prediction,
        classes=facts.classes,
        rows=facts.rows,
        source=f"MLE-bench: kaggle.com/c/{competition.id}",
        licence="the competition's rules",
        inputs=str(competition.public),
        masked=competition.masked,
        baseline=Scores(private=metric.score(known.baseline)),
        public_feedback=False,
    )


def _description(competition: Competition) -> str:
    sample = competition.sample
    shown = sample.is_relative_to(competition.public)
    told = f"The sample submission is `input/{sample.relative_to(competition.public)}`.\n"
    return competition.description.rstrip() + "\n" + RULES.format(sample=told if shown else "")
