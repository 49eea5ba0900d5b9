"""A downloaded competition as a task: the person's own data, with what the sample tells of them."""

from __future__ import annotations

import hashlib
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from mle_ideator.benchmarks.cache import built_once
from mle_ideator.benchmarks.kaggle.declaring import DECLARATION, Declaration, read_declaration
from mle_ideator.benchmarks.kaggle.files import Files, find_files
from mle_ideator.benchmarks.own_data.assembling import assemble
from mle_ideator.benchmarks.own_data.reading import Table, read_table
from mle_ideator.benchmarks.own_data.reopening import reopen
from mle_ideator.config import OwnData
from mle_ideator.errors import TaskError
from mle_ideator.protocols import Grader
from mle_ideator.types import Task, Value

if TYPE_CHECKING:
    import pandas as pd

MADE, THEIRS, UNPACKED, DATA = "task.json", "theirs", "unpacked", "data"
SAMPLE, TEST_IDS = "sample.csv", "test_ids.csv"
SEED = 0
"""Of the hold-out: the same for every run, so that runs compare."""


class Made(Value, frozen=True, kw_only=True):
    """What a built folder says of itself."""

    task: Task
    own: OwnData


@dataclass(frozen=True)
class _Tables:
    train: Table
    test: Table
    sample: Table
    target: str
    id_column: str


def load(folder: Path) -> tuple[Task, Grader]:
    """The competition in a folder. Raises `TaskError`, in one line, if it can not be used."""
    folder = folder.expanduser().resolve()
    built = built_folder(folder).parent
    made = _read(built)
    if made is None:
        raise TaskError(f"{built} can not be read; delete the folder")
    theirs = built / THEIRS
    own = msgspec.structs.replace(
        made.own, train=str(theirs / "train.csv"), test=str(theirs / "test.csv")
    )
    task, grader = reopen(made.task, own, built / DATA)
    # The downloaded files and their copy hold the rows that are graded.
    masked = (str(folder), str(theirs), *task.masked)
    return msgspec.structs.replace(task, masked=masked), grader


def built_folder(folder: Path) -> Path:
    """Where `own_data` has put the task of a downloaded competition, built if need be."""
    folder = folder.expanduser().resolve()
    declaration = read_declaration(folder)
    files = find_files(folder, declaration)
    slug = _slug(declaration.competition or folder.name)
    name = f"kaggle-{slug}-{_key(folder, files)}"
    built = built_once(
        name,
        lambda into: _build(folder, declaration, files, into),
        lambda path: _read(path) is not None,
    )
    return built / DATA


def _build(folder: Path, declaration: Declaration, files: Files, into: Path) -> None:
    theirs = into / THEIRS
    theirs.mkdir(mode=0o700)
    tables = _tables(folder, declaration, files, theirs / UNPACKED)
    shutil.rmtree(theirs / UNPACKED, ignore_errors=True)
    remarks = _write_theirs(tables, theirs)
    own = OwnData(
        train=str(theirs / "train.csv"),
        test=str(theirs / "test.csv"),
        target=tables.target,
        metric=declaration.metric,
        id_column=_usable_id(tables),
        holdout=declaration.holdout,
    )
    task, _ = assemble(own, into / DATA, SEED)
    task = _named(task, declaration, folder, remarks)
    (into / MADE).write_bytes(msgspec.json.encode(Made(task=task, own=own)))


def _read(built: Path) -> Made | None:
    try:
        return msgspec.json.decode((built / MADE).read_bytes(), type=Made)
    except (OSError, msgspec.DecodeError):
        return None


def _tables(folder: Path, declaration: Declaration, files: Files, unpacked: Path) -> _Tables:
    train, test, sample = (
        read_table(file.as_file(unpacked)) for file in (files.train, files.test, files.sample)
    )
    id_column = declaration.id_column or str(sample.frame.columns[0])
    target = declaration.target or _target(folder, train, test, sample)
    if id_column in test.frame.columns and id_column in sample.frame.columns:
        ids, asked = test.frame[id_column], sample.frame[id_column]
        if not ids.is_unique or sorted(ids) != sorted(asked):
            raise TaskError(
                f"the ids of {files.sample.name} and {files.test.name} (column {id_column!r}) are "
                f"not the same, each once; name the id column in {folder / DECLARATION}"
            )
    elif len(sample.frame) != len(test.frame):
        raise TaskError(
            f"{files.sample.name} has {len(sample.frame):,} rows, {files.test.name} "
            f"{len(test.frame):,}, and no id column is in both; a row each is needed"
        )
    return _Tables(train, test, sample, target, id_column)


def _target(folder: Path, train: Table, test: Table, sample: Table) -> str:
    alone = [str(name) for name in train.frame.columns if name not in test.frame.columns]
    asked = [name for name in alone if name in sample.frame.columns[1:]]
    where = f"name it in {folder / DECLARATION} (`target: COLUMN`)"
    if len(asked) > 1:
        raise TaskError(
            f"the competition has several targets ({', '.join(asked[:5])}); only one can be taken: "
            f"{where}"
        )
    found = asked or alone
    if len(found) != 1:
        could = ", ".join(found[:5]) or "none, as test.csv has every column of train.csv"
        raise TaskError(f"which column is the target can not be told; it could be {could}; {where}")
    return found[0]


def _usable_id(tables: _Tables) -> str | None:
    """The sample's id column, if it names the rows of both files."""
    name = tables.id_column
    both = (tables.train.frame, tables.test.frame)
    named = all(name in frame.columns and frame[name].is_unique for frame in both)
    return name if named else None


def _write_theirs(tables: _Tables, theirs: Path) -> list[str]:
    """Train and test with the same columns but for the target; remarks on those left out."""
    train, test, target = tables.train.frame, tables.test.frame, tables.target
    shared = [str(name) for name in train.columns if name in test.columns and name != target]
    only_train = [str(n) for n in train.columns if n not in (*shared, target)]
    only_test = [str(n) for n in test.columns if n not in (*shared, target)]
    if target not in train.columns:
        raise TaskError(f"{tables.train.path.name} has no column {target!r}, the target")
    _write(train[[*shared, target]], theirs / "train.csv")
    _write(test[shared], theirs / "test.csv")
    _write(tables.sample.frame, theirs / SAMPLE)
    if tables.id_column in test.columns:
        _write(test[[tables.id_column]], theirs / TEST_IDS)
    remarks = []
    for where, names in (("train.csv", only_train), ("test.csv", only_test)):
        if names:
            remarks.append(f"columns that only {where} has were left out: {', '.join(names)}.")
    return remarks


def _write(frame: pd.DataFrame, path: Path) -> None:
    frame.to_csv(path, index=False, lineterminator="\n")


def _named(task: Task, declaration: Declaration, folder: Path, remarks: list[str]) -> Task:
    name = declaration.competition or folder.name
    told = folder / "description.md"
    theirs = told.read_text(encoding="utf-8").rstrip() + "\n\n" if told.is_file() else ""
    notes = "".join(f"- {remark}\n" for remark in remarks)
    return msgspec.structs.replace(
        task,
        id=f"kaggle-{_slug(name)}",
        title=f"{name}: {task.title.lower()}",
        description=theirs + task.description + (f"\n## Left out\n\n{notes}" if notes else ""),
        source=f"kaggle.com/competitions/{name}",
        licence="the competition's rules",
    )


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "competition"


def _key(folder: Path, files: Files) -> str:
    """By sizes and times of the files."""
    own = Path(__file__)
    named = (files.train, files.test, files.sample)
    beside = [folder / DECLARATION, folder / "description.md"]
    total = hashlib.sha256(repr([file.member for file in named]).encode())
    for path in (*(file.path for file in named), *beside, own, own.with_name("files.py")):
        if path.is_file():
            status = path.stat()
            total.update(f"{path}:{status.st_size}:{status.st_mtime_ns}\n".encode())
    return total.hexdigest()[:12]
