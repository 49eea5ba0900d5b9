"""A task from its declaration: built once, checked, and given its grader."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from functools import cached_property
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from mle_ideator.benchmarks import building
from mle_ideator.benchmarks.cache import built_once
from mle_ideator.benchmarks.declared.boards import LEADERBOARD
from mle_ideator.benchmarks.declared.spec import Spec, read_spec, task_id_of
from mle_ideator.errors import GradingError, TaskError
from mle_ideator.protocols import Grader
from mle_ideator.types import Grade, Metric, Scores, Task

if TYPE_CHECKING:
    import numpy as np

log = logging.getLogger(__name__)
BUILT = "built.json"
CODE = ("building.py", "trivial.py", "declared/assembling.py")
NO_PART = frozenset({LEADERBOARD, "references.py", "description.md", "README.md"})
"""Of a task's folder, what the files are not made from."""


class Built(msgspec.Struct, frozen=True):
    """What is known once the files are there."""

    sha256: str
    version: str
    """Of the package that the data was read from, if it was."""
    rows: tuple[int, int]
    baseline: Scores


def load(folder: Path) -> tuple[Task, Grader]:
    """The task that a folder declares, and its grader, from the cache or built into it."""
    folder = folder.resolve()
    spec, task_id = read_spec(folder), task_id_of(folder)
    built_at = built_once(
        f"{task_id}-{_key(spec, folder)}", lambda path: build(spec, folder, path), _intact
    )
    built = read_built(built_at)
    if spec.sha256 and built.sha256 != spec.sha256:
        source = f"{spec.source.distribution} {built.version}" if spec.source else str(folder)
        log.warning(
            "task %s: %s gives other rows than the version the task was measured on; "
            "its scores compare with each other, not with published ones (sha256 %s)",
            *(task_id, source, built.sha256),
        )
    return _task(spec, folder, built_at, built), grader_of(spec, built_at)


def build(spec: Spec, folder: Path, into: Path) -> None:
    """Make the files of the task in `folder`. Raises `TaskError`."""
    import numpy as np

    rng = np.random.default_rng(spec.seed)
    frames = _build_function(folder)(spec.source.root if spec.source else folder, rng)
    train, test = building.shuffled_and_numbered(frames, spec.id_column, rng)
    part = building.halves(test, rng, spec.blocks or spec.group)
    sample = building.sample_submission(
        train,
        test[spec.id_column],
        targets=spec.targets,
        metric=spec.metric,
        prediction=spec.prediction,
        classes=spec.classes,
    )
    building.write_files(
        *(into, train, test, part, sample),
        targets=spec.targets,
        id_column=spec.id_column,
        tables=frames.tables,
        event=spec.event,
        group=spec.group,
    )
    built = Built(
        sha256=building.digest(into),
        version=spec.source.version if spec.source else "",
        rows=(len(train), len(test)),
        baseline=_baseline(spec, into),
    )
    (into / BUILT).write_bytes(msgspec.json.encode(built))


def _key(spec: Spec, folder: Path) -> str:
    """Hash of all that the files are made from."""
    benchmarks = Path(building.__file__).parent
    own = [path for path in sorted(folder.rglob("*")) if path.is_file() and _is_part(path, folder)]
    total = hashlib.sha256(spec.source.version.encode() if spec.source else b"")
    for path in [*(benchmarks / name for name in CODE), *own]:
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()[:12]


def _is_part(path: Path, folder: Path) -> bool:
    names = path.relative_to(folder).parts
    return names[0] not in NO_PART and "__pycache__" not in names


def _build_function(folder: Path) -> Callable[[Path, np.random.Generator], building.Frames]:
    """`build` of a folder's build.py. Raises `TaskError`."""
    file = folder / "build.py"
    found = spec_from_file_location(f"_build_{folder.name}", file)
    if found is None or found.loader is None or not file.is_file():
        raise TaskError(f"{file} does not exist: it makes the task's files")
    module = module_from_spec(found)
    found.loader.exec_module(module)
    if not callable(made := getattr(module, "build", None)):
        raise TaskError(f"{file} has no function build(root, rng)")
    return made  # type: ignore[no-any-return]


def _baseline(spec: Spec, folder: Path) -> Scores:
    grade = grader_of(spec, folder).grade(folder / building.PUBLIC / building.SAMPLE)
    if not grade.valid:
        raise GradingError(f"the sample submission was refused: {grade.problems[0].message}")
    return Scores(None, grade.public, grade.private)


def read_built(folder: Path) -> Built:
    return msgspec.json.decode((folder / BUILT).read_bytes(), type=Built)


def _intact(folder: Path) -> bool:
    """False if files were changed or lost since they were built."""
    try:
        return read_built(folder).sha256 == building.digest(folder)
    except (OSError, msgspec.DecodeError):
        return False


def grader_of(spec: Spec, folder: Path) -> Grader:
    def make() -> Grader:
        from mle_ideator.benchmarks.grading import FileGrader

        return FileGrader(
            folder / building.PRIVATE / building.ANSWERS,
            metric=spec.metric,
            id_column=spec.id_column,
            targets=spec.targets,
            prediction=spec.prediction,
            classes=spec.classes,
            event=spec.event,
            group=spec.group,
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


def _task(spec: Spec, folder: Path, built_at: Path, built: Built) -> Task:
    described = (folder / "description.md").read_text(encoding="utf-8")
    source = f"{spec.source.distribution} {built.version}: " if spec.source else ""
    return Task(
        id=task_id_of(folder),
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
        source=f"{source}{spec.origin}",
        licence=spec.licence,
        inputs=str(built_at / building.PUBLIC),
        # The answers too: a sandbox that can hide paths should not rely on file modes. And what
        # makes them, as a generator does.
        masked=(
            *(spec.source.paths if spec.source else ()),
            str(built_at / building.PRIVATE),
            str(folder),
        ),
        baseline=built.baseline,
        min_delta=spec.min_delta,
    )
