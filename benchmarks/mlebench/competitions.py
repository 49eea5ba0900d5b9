"""Where a competition's prepared data and its entry in mle-bench's registry lie."""

from __future__ import annotations

import importlib.util
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec
import yaml

from mle_ideator.errors import TaskError, unknown

VARIABLE = "MLE_IDEATOR_MLEBENCH"
"""A clone of mle-bench, or a folder of competitions laid out like its `mlebench/competitions`."""
CONFIG, GRADE, LEADERBOARD, OWN = "config.yaml", "grade.py", "leaderboard.csv", "mle-ideator.yaml"
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_SAMPLE = re.compile(r".*sample.?submission.*\.csv", re.IGNORECASE)


class _Dataset(msgspec.Struct, frozen=True):
    answers: str
    sample_submission: str


class _Grader(msgspec.Struct, frozen=True):
    name: str
    grade_fn: str


class Config(msgspec.Struct, frozen=True):
    """What is used of a competition's `config.yaml`."""

    id: str
    name: str
    dataset: _Dataset
    grader: _Grader
    description: str = ""


class Own(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A person's `DATA/ID/mle-ideator.yaml`: what mle-bench does not say, or says wrongly."""

    metric: str | None = None
    """A name of ours (docs/grading.md), or any other with `higher_is_better`."""
    higher_is_better: bool | None = None
    type: str | None = None
    prediction: Literal["value", "label", "probability"] | None = None
    classes: tuple[str, ...] | None = None
    split: Literal["train", "test"] = "test"


@dataclass(frozen=True)
class Competition:
    """A prepared competition. All paths are absolute."""

    id: str
    data: Path
    """The folder DATA."""
    entry: Path
    """Its folder in the registry."""
    config: Config
    own: Own
    sample: Path
    answers: Path

    @property
    def folder(self) -> Path:
        return self.data / self.id

    @property
    def public(self) -> Path:
        return self.folder / "prepared" / "public"

    @property
    def description(self) -> str:
        """Markdown, as the competition's host wrote it."""
        places = (self.entry / "description.md", self.public / "description.md")
        named = self.entry.parent.parent.parent / self.config.description
        found = next((path for path in (*places, named) if path.is_file()), None)
        return found.read_text(encoding="utf-8") if found else f"# {self.config.name}\n"

    @property
    def package_root(self) -> Path | None:
        """What has to be on the path so that `mlebench` can be imported, if the entry is in it."""
        package = self.entry.parent.parent
        is_one = package.name == "mlebench" and (package / "grade_helpers.py").is_file()
        return package.parent if is_one else None

    @property
    def masked(self) -> tuple[str, ...]:
        """All of it but the public files: answers, the data they were split from, the grader."""
        prepared = self.public.parent
        beside = [path for path in self.folder.iterdir() if path != prepared]
        hidden = [path for path in prepared.iterdir() if path != self.public]
        entry = [] if self.entry == self.folder else [self.entry]
        return tuple(sorted(map(str, [*beside, *hidden, *entry])))


def find_competition(path: str) -> Competition:
    """The competition `DATA/ID`. Raises `TaskError` that says what is missing and how to get it."""
    folder = Path(path).expanduser().resolve()
    data, name = folder.parent, folder.name
    if not _ID.fullmatch(name) or data == folder:
        raise TaskError(f"{path!r} names no competition; write DATA/ID, the ID as mle-bench has it")
    prepared = folder / "prepared"
    if not (prepared / "public").is_dir() or not (prepared / "private").is_dir():
        raise _unprepared(data, name)
    entry = _entry(data, name)
    config = _read(entry / CONFIG, Config)
    own = _read(folder / OWN, Own) if (folder / OWN).exists() else Own()
    answers = _within(data, config.dataset.answers, entry)
    if not answers.is_file():
        raise TaskError(f"{name}: the answers {answers} do not exist; prepare it again")
    sample = _sample(_within(data, config.dataset.sample_submission, entry), prepared / "public")
    return Competition(name, data, entry, config, own, sample, answers)


def _unprepared(data: Path, name: str) -> TaskError:
    there = [path.parent.name for path in data.glob("*/prepared")] if data.is_dir() else []
    what = unknown("competition", name, there) if there else f"nothing is prepared in {data}"
    return TaskError(
        f"{what.rstrip('.')}; prepare it with `mlebench prepare -c {name} --data-dir {data}` "
        "(docs/mlebench.md)"
    )


def _entry(data: Path, name: str) -> Path:
    """Its folder in the registry: beside the data, in the variable's folder, or installed."""
    folders = [data, *_registries()]
    for registry in folders:
        if (registry / name / CONFIG).is_file():
            return registry / name
    raise TaskError(
        f"the competition {name} is prepared, but its {CONFIG} and {GRADE} were not found in "
        f"{', '.join(map(str, folders))}; set {VARIABLE} to a clone of "
        "https://github.com/openai/mle-bench, or install that"
    )


def _registries() -> list[Path]:
    named = os.environ.get(VARIABLE)
    if named:
        root = Path(named).expanduser().resolve()
        inside = (root / "mlebench" / "competitions", root / "competitions")
        return [next((path for path in inside if path.is_dir()), root)]
    spec = importlib.util.find_spec("mlebench")  # does not import it
    places = spec.submodule_search_locations if spec else None
    return [Path(places[0]).resolve() / "competitions"] if places else []


def _read(file: Path, kind: type[Any]) -> Any:
    try:
        values = yaml.safe_load(file.read_text(encoding="utf-8"))
        return msgspec.convert(values, kind)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, msgspec.ValidationError) as error:
        why = " ".join(str(error).split())
        raise TaskError(f"{file} can not be used: {why}") from error


def _within(data: Path, relative: str, entry: Path) -> Path:
    path = (data / relative).resolve()
    if not path.is_relative_to(data):
        raise TaskError(f"{entry / CONFIG} names {relative}, which is outside {data}")
    return path


def _sample(named: Path, public: Path) -> Path:
    """Some configs name a place where `prepare` does not put it."""
    if named.is_file():
        return named
    found = sorted(path for path in public.iterdir() if _SAMPLE.fullmatch(path.name))
    if not found:
        raise TaskError(f"there is no sample submission {named}, nor another in {public}")
    return found[0]
