"""Folders that agent code could write to: made usable again, or removed, whatever it did to them.

Everything goes through descriptors of opened folders: no link is followed, and neither depth nor
the length of a path matters.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_OPEN = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_USABLE = 0o700


def make_usable(folder: Path) -> None:
    """A folder that its owner can use, whatever stands there now: what is no folder goes.

    Raises `OSError` if that can not be.
    """
    try:
        with _opened(folder):
            return
    except FileNotFoundError:
        pass
    except NotADirectoryError:
        folder.unlink()
    folder.mkdir(mode=_USABLE)


def remove_tree(folder: Path) -> None:
    """Remove a folder with all that is in it, as far as that can be; never raises `OSError`."""
    empty_folder(folder)
    with suppress(OSError):
        folder.rmdir()


def empty_folder(folder: Path) -> None:
    """Remove all that is in it, as far as that can be; never raises `OSError`."""
    with suppress(OSError), _opened(folder) as root:
        _empty(root)


def _empty(root: int) -> None:
    """Folders that lie deeper are moved up here first, so that each is removed at depth one."""
    waiting = _names(root)
    while waiting:
        name = waiting.pop()
        if _unlinked(name, root):
            continue
        with suppress(OSError):
            with _opened(name, root) as folder:
                waiting += _emptied(folder, root)
            os.rmdir(name, dir_fd=root)


def _emptied(folder: int, root: int) -> list[str]:
    """Remove the files in `folder` and move its folders to `root`; returns their names there."""
    moved = []
    for name in _names(folder):
        if _unlinked(name, folder):
            continue
        fresh = secrets.token_hex(16)
        with suppress(OSError):
            with _opened(name, folder):  # a folder that can not be written can not be moved
                os.rename(name, fresh, src_dir_fd=folder, dst_dir_fd=root)
            moved.append(fresh)
    return moved


def _unlinked(name: str, folder: int) -> bool:
    """Is it gone? No, if it is a folder."""
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _names(folder: int) -> list[str]:
    return os.listdir(_path(folder))  # noqa: PTH208 a descriptor


@contextmanager
def _opened(folder: Path | str, parent: int | None = None) -> Iterator[int]:
    """A descriptor of the folder itself, with rights to use it; a link is no folder."""
    descriptor = os.open(folder, _OPEN, dir_fd=parent)
    try:
        mode = os.fstat(descriptor).st_mode
        if mode & _USABLE != _USABLE:
            Path(_path(descriptor)).chmod(mode & 0o7777 | _USABLE)
        yield descriptor
    finally:
        os.close(descriptor)


def _path(descriptor: int) -> str:
    """Leads to what was opened, not to what has that name now."""
    return f"/proc/self/fd/{descriptor}"
