"""What a task declares in its `task.yaml`."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from functools import cached_property
from pathlib import Path
from typing import Literal

import msgspec
import yaml

from mle_ideator.errors import TaskError
from mle_ideator.protocols import TaskCard

DECLARATION = "task.yaml"


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The installed package that holds the data."""

    package: str
    """Name to import, though it never is imported: its files are read."""
    distribution: str
    """Name to install."""
    files: tuple[str, ...]
    """Files or folders within the package that hold the data, to be hidden from agents."""

    @property
    def root(self) -> Path:
        spec = importlib.util.find_spec(self.package)
        if spec is None or not spec.submodule_search_locations:
            raise self._lacking()
        return Path(spec.submodule_search_locations[0])

    @property
    def version(self) -> str:
        try:
            return importlib.metadata.version(self.distribution)
        except importlib.metadata.PackageNotFoundError as error:
            raise self._lacking() from error

    def _lacking(self) -> TaskError:
        return TaskError(
            f"the data lie in the package {self.distribution}, which is not installed; get it with "
            f"`pip install {self.distribution}`"
        )

    @property
    def paths(self) -> tuple[str, ...]:
        root = self.root
        return tuple(str(root / name) for name in self.files)


class Spec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """One `task.yaml`."""

    title: str
    type: str
    split: Literal["train", "test"]
    metric: str
    higher_is_better: bool
    prediction: Literal["value", "label", "probability"]
    targets: tuple[str, ...]
    """Target columns of the training file."""
    rows: tuple[int, int]
    """Rows of train.csv and test.csv."""
    origin: str
    """Where the data came from."""
    licence: str
    """Of the data, and of the package that holds it."""
    source: Source | None = None
    """The package that holds the data; without it, what the task's own folder holds."""
    sha256: str = ""
    """Of the built files (`building.digest`), as made from the version that was measured."""
    id_column: str = "id"
    classes: tuple[str, ...] = ()
    """Class names; two (the second is the positive one) or more."""
    blocks: str | None = None
    """Column whose equal values (a day's, say) stay together, in the public or the private part."""
    min_delta: float = 0.0
    group: str | None = None
    """Column of both files whose equal values are ranked among each other, for ranking metrics."""
    event: str | None = None
    """Column of train.csv: 1 where the target is a time that was observed, 0 where it was cut short
    there (survival)."""
    seed: int = 20260101
    smoke: bool = False
    """Is a session on it over in seconds, so that it belongs to the suite `smoke`?"""

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Prediction columns of a submission: one a class where there are more than two."""
        by_class = self.prediction == "probability" and len(self.classes) > 2
        return self.classes if by_class else self.targets

    def card(self, task_id: str) -> TaskCard:
        return TaskCard(
            id=task_id,
            title=self.title,
            type=self.type,
            split=self.split,
            metric=self.metric,
            higher_is_better=self.higher_is_better,
            rows=self.rows,
            source=f"{self.source.distribution}: {self.origin}" if self.source else self.origin,
            licence=self.licence,
        )


def read_spec(folder: Path) -> Spec:
    """The declaration of the task in a folder. Raises `TaskError`."""
    # The C loader is ten times faster, and `tasks` and `--help` read all of them.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    file = folder / DECLARATION
    if not file.is_file():
        raise TaskError(f"{folder} is no task: it has no {DECLARATION}")
    try:
        values = yaml.load(file.read_text(encoding="utf-8"), loader)  # noqa: S506 (both are safe)
        return msgspec.convert(values, Spec)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, msgspec.ValidationError) as error:
        why = " ".join(str(error).split())
        raise TaskError(f"{file} declares no task: {why}") from error


def task_id_of(folder: Path) -> str:
    return folder.name.replace("_", "-")
