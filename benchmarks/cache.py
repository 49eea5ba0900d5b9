"""Built tasks on disk: made once, beside, and moved into place whole.

They lie in the user's cache folder, or where the environment variable `MLE_IDEATOR_CACHE` says.
A folder's name ends in the hash of everything that it was made from. Processes that build the
same task at once all make it; the first to finish wins and the others take its folder.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from mle_ideator.errors import TaskError

VARIABLE = "MLE_IDEATOR_CACHE"
SECONDS_OF_A_DAY = 86_400


def cache_folder() -> Path:
    """Where built tasks lie; it need not exist yet."""
    chosen = os.environ.get(VARIABLE)
    if chosen:
        return Path(chosen).expanduser().resolve() / "tasks"
    import platformdirs

    return platformdirs.user_cache_path("mle-ideator") / "tasks"


def built_once(name: str, build: Callable[[Path], None], intact: Callable[[Path], bool]) -> Path:
    """The cached folder `name`; if it is absent or no longer `intact`, what `build` fills."""
    final = cache_folder() / name
    if final.is_dir():
        if intact(final):
            return final
        _discard(final)
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        _sweep(final.parent)
        beside = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=final.parent))
    except OSError as error:
        reason = f"can not write to the task cache {final.parent}: {error.strerror}"
        raise TaskError(f"{reason}; set {VARIABLE} to a folder that can be written to") from error
    try:
        build(beside)
        beside.chmod(0o755)
        _move_into_place(beside, final)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return final


def _sweep(parent: Path) -> None:
    """Remove what builds that were killed have left; a build takes seconds, not a day."""
    for path in parent.glob(".*"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > SECONDS_OF_A_DAY:
                shutil.rmtree(path, ignore_errors=True)


def _move_into_place(beside: Path, final: Path) -> None:
    try:
        beside.rename(final)
    except OSError:
        if not final.is_dir():  # else another process was faster: its folder is the same
            raise


def _discard(folder: Path) -> None:
    """Move away first: whoever looks meanwhile finds a whole folder or none."""
    aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-old-", dir=folder.parent))
    try:
        folder.rename(aside / folder.name)
    except FileNotFoundError:
        pass  # another process was faster
    finally:
        shutil.rmtree(aside, ignore_errors=True)
