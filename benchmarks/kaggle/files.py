"""The three files of a downloaded competition: as they are, zipped one by one, or all in one."""

from __future__ import annotations

import re
import shutil
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mle_ideator.benchmarks.kaggle.declaring import DECLARATION, Declaration
from mle_ideator.errors import TaskError

_USUAL = {
    "train": r"train\.csv(\.gz)?",
    "test": r"test\.csv(\.gz)?",
    "sample": r".*(sample.?submission|gender_submission).*\.csv(\.gz)?",
}
_MOST_BYTES = 32 * 2**30
"""Of one file out of an archive."""


@dataclass(frozen=True)
class Found:
    """A file, or a member of a zip archive."""

    path: Path
    member: str | None = None

    @property
    def name(self) -> str:
        return Path(self.member).name if self.member else self.path.name

    def as_file(self, folder: Path) -> Path:
        """The file itself, or what it is unpacked to in `folder`."""
        if self.member is None:
            return self.path
        folder.mkdir(mode=0o700, exist_ok=True)
        unpacked = folder / self.name
        try:
            with zipfile.ZipFile(self.path) as archive:
                if archive.getinfo(self.member).file_size > _MOST_BYTES:
                    raise TaskError(f"{self.member} in {self.path} is larger than 32 GiB")
                with archive.open(self.member) as source, unpacked.open("wb") as target:
                    shutil.copyfileobj(source, target)
        except (OSError, zipfile.BadZipFile, RuntimeError) as error:
            raise TaskError(f"{self.path} can not be unpacked: {error}") from error
        return unpacked


@dataclass(frozen=True)
class Files:
    train: Found
    test: Found
    sample: Found


def find_files(folder: Path, declaration: Declaration) -> Files:
    """Raises `TaskError` for a file that is missing, or that could be several."""
    if not folder.is_dir():
        raise TaskError(
            f"there is no folder {folder}; download a competition into it with "
            "`kaggle competitions download -c NAME -p FOLDER`"
        )
    there = list(_there(folder))
    return Files(
        train=_one("train", declaration.train, there, folder),
        test=_one("test", declaration.test, there, folder),
        sample=_one("sample", declaration.sample, there, folder),
    )


def _there(folder: Path) -> Iterator[Found]:
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() == ".zip":
            yield from _members(path)
        elif path.is_file():
            yield Found(path)


def _members(path: Path) -> Iterator[Found]:
    try:
        with zipfile.ZipFile(path) as archive:
            names = [info.filename for info in archive.infolist() if not info.is_dir()]
    except (OSError, zipfile.BadZipFile) as error:
        raise TaskError(f"{path} is no whole zip archive ({error}); download it again") from error
    yield from (Found(path, name) for name in names if not name.startswith("__MACOSX/"))


def _one(kind: str, named: str | None, there: list[Found], folder: Path) -> Found:
    """A file that lies open comes before one in an archive."""
    pattern = re.escape(named) if named else _USUAL[kind]
    found = [file for file in there if re.fullmatch(pattern, file.name, re.IGNORECASE)]
    found = [file for file in found if file.member is None] or found
    if not found:
        what = named or {"sample": "sample_submission.csv"}.get(kind, f"{kind}.csv")
        raise TaskError(
            f"{folder} has no {what}, zipped or not; name the file in {folder / DECLARATION} "
            f"(`{kind}: FILE`)"
        )
    if len(found) > 1:
        names = ", ".join(file.member or file.name for file in found[:5])
        raise TaskError(
            f"{folder} has several files that could be the {kind}: {names}; keep one, or name it "
            f"in {folder / DECLARATION} (`{kind}: FILE`)"
        )
    return found[0]
