"""A bundled task from its declaration: built once, checked, and given its grader."""

from __future__ import annotations

import hashlib
import importlib
import logging
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

import msgspec

from mle_ideator.benchmarks import building
from mle_ideator.benchmarks.bundled.spec import Spec, read_spec, task_folder
from mle_ideator.benchmarks.cache import built_once
from mle_ideator.errors import GradingError
from mle_ideator.protocols import Grader
from mle_ideator.types import Grade, Metric, Scores, Task

log = logging.getLogger(__name__)
BUILT = "built.json"
CODE = ("building.py", "trivial.py", "bundled/assembling.py")


class Built(msgspec.Struct, frozen=True):
    """What is known once the files are there."""

    sha256: str
    version: str
    """Of the package that the data was read from."""
    rows: tuple[int, int]
    baseline: Scores


def load(task_id: str) -> tuple[Task, Grader]:
    """The task and its grader, from the cache or built into it."""
    spec = read_spec(task_id)
    folder = built_once(
        f"{task_id}-{_key(spec, task_id)}", lambda path: _build(spec, task_id, path), _intact
    )
    built = _read_built(folder)
    if built.sha256 != spec.sha256:
        log.warning(
            "task %s: %s %s gives other rows than the version the task was measured on; "
            "its scores compare with each other, not with published ones (sha256 %s)",
            *(task_id, spec.source.distribution, built.version, built.sha256),
        )
    return _task(spec, task_id, folder, built), _grader(spec, folder)


def _key(spec: Spec, task_id: str) -> str:
    """Hash of all that the files are made from."""
    benchmarks = Path(building.__file__).parent
    made_by = [benchmarks / name for name in CODE]
    declared = [task_folder(task_id) / name for name in ("task.yaml", "build.py")]
    total = hashlib.sha256(spec.source.version.encode())
    for path in [*made_by, *declared]:
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()[:12]


def _build(spec: Spec, task_id: str, folder: Path) -> None:
    import numpy as np

    rng = np.random.default_rng(spec.seed)
    module = importlib.import_module(f"{__package__}.{task_folder(task_id).name}.build")
    frames: building.Frames = module.build(spec.source.root, rng)
    train, test = building.shuffled_and_numbered(frames, spec.id_column, rng)
    part = building.halves(test, rng, spec.blocks)
    sample = building.sample_submission(
        train,
        test[spec.id_column],
        targets=spec.targets,
        metric=spec.metric,
        prediction=spec.prediction,
        classes=spec.classes,
    )
    building.write_files(
        *(folder, train, test, part, sample),
        targets=spec.targets,
        id_column=spec.id_column,
        tables=frames.tables,
    )
    built = Built(
        sha256=building.digest(folder),
        version=spec.source.version,
        rows=(len(train), len(test)),
        baseline=_baseline(spec, folder),
    )
    (folder / BUILT).write_bytes(msgspec.json.encode(built))


def _baseline(spec: Spec, folder: Path) -> Scores:
    grade = _grader(spec, folder).grade(folder / building.PUBLIC / building.SAMPLE)
    if not grade.valid:
        raise GradingError(f"the sample submission was refused: {grade.problems[0].message}")
    return Scores(None, grade.public, grade.private)


def _read_built(folder: Path) -> Built:
    return msgspec.json.decode((folder / BUILT).read_bytes(), type=Built)


def _intact(folder: Path) -> bool:
    """False if files were changed or lost since they were built."""
    try:
        return _read_built(folder).sha256 == building.digest(folder)
    except (OSError, msgspec.DecodeError):
        return False


def _grader(spec: Spec, folder: Path) -> Grader:
    def make() -> Grader:
        from mle_ideator.benchmarks.grading import FileGrader

        return FileGrader(
            folder / building.PRIVATE / building.ANSWERS,
            metric=spec.metric,
            id_column=spec.id_column,
            targets=spec.targets,
            prediction=spec.prediction,
            classes=spec.classes,
        )

    return _WhenNeeded(make)


class _WhenNeeded:
    """A grader made at its first use: loading numpy is not what a session should begin with."""

    def __init__(self, make: Callable[[], Grader]) -> None:
        self._make = make

    @cached_property
    def _grader(self) -> Grader:
        return self._make()

    @property
    def max_bytes(self) -> int:
        return self._grader.max_bytes

    def grade(self, submission: Path) -> Grade:
        return self._grader.grade(submission)


def _task(spec: Spec, task_id: str, folder: Path, built: Built) -> Task:
    described = (task_folder(task_id) / "description.md").read_text(encoding="utf-8")
    return Task(
        id=task_id,
        title=spec.title,
        description=described,
        type=spec.type,
        split=spec.split,
        metric=Metric(spec.metric, spec.higher_is_better),
        id_column=spec.id_column,
        targets=spec.columns,
        prediction=spec.prediction,
        classes=spec.classes,
        rows=built.rows,
        source=f"{spec.source.distribution} {built.version}: {spec.origin}",
        licence=spec.licence,
        inputs=str(folder / building.PUBLIC),
        # The answers too: a sandbox that can hide paths should not rely on file modes.
        masked=(*spec.source.paths, str(folder / building.PRIVATE)),
        baseline=built.baseline,
        min_delta=spec.min_delta,
    )
