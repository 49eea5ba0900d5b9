"""A workspace that shows a snapshot's files, and keeps what is changed in a layer of its own.

By Linux's overlay file system, which root may mount. The snapshot's files are the lower layer, so
opening takes no copy, and what was changed since is what is in the upper one.
"""

from __future__ import annotations

import ctypes
import os
import re
import stat
import tempfile
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

from mle_ideator.sandboxes.owners import is_gone, this_process
from mle_ideator.sandboxes.trees import remove_tree
from mle_ideator.sandboxes.workspaces.folders import Folders, Found, passes_by_permissions, walk

_SOURCE = "mle-ideator:"
"""Begins the source of our mounts in the list of mounts; who made it follows."""
_NOSUID, _NODEV, _DETACH = 0x2, 0x4, 0x2
_OPTIONS = "redirect_dir=on,index=off,metacopy=off,xino=off"


class Overlay:
    """Mounted at an empty folder; raises `OSError` where that can not be.

    What stands in that folder under a name in `apart` becomes part of the upper layer. `upper` is
    this layer, and `beside` an empty folder on the same file system.
    """

    def __init__(self, workspace: Path, lower: Path, apart: Collection[str]) -> None:
        if not passes_by_permissions():
            raise PermissionError("only root may mount")
        self._workspace, self._apart = workspace, apart
        prefix = f".{workspace.name}.layers-"
        _remove_layers(workspace.parent, prefix)
        self._layers = Path(tempfile.mkdtemp(prefix=prefix, dir=workspace.parent))
        self.upper, self._work = self._layers / "upper", self._layers / "work"
        self.beside = self._layers / "plain"
        self._mounted = False
        try:
            for folder in (self.upper, self._work, self.beside):
                folder.mkdir()
            os.setxattr(self.upper, "trusted.mle-ideator", b"")  # overlays mark their layers so
            os.removexattr(self.upper, "trusted.mle-ideator")
            self._move_apart(workspace, self.upper)
            self._mount(lower)
            self._mounted = True
        except BaseException:
            self._move_apart(self.upper, workspace)
            remove_tree(self._layers)
            raise

    def unmount(self) -> None:
        """The upper layer stays, and what is apart is in the workspace. Raises `OSError`."""
        if not self._mounted:
            return
        _unmount(self._workspace)
        self._mounted = False
        self._move_apart(self.upper, self._workspace)

    def remove(self) -> None:
        """The upper layer, too."""
        remove_tree(self._layers)

    def changed(self, upper: Folders) -> Iterator[Found]:
        """What stands in the upper layer. Three kinds are of its own: `hidden` is not there any
        more; a folder that is `new` shows nothing of the snapshot; of one that was `moved` here
        and of all that is in it, only the workspace tells.
        """
        moved: set[str] = set()
        for found in walk(upper, skipped=self._apart):
            if found.path.rpartition("/")[0] in moved:
                moved.add(found.path)
                continue
            kind = _kind(upper, found)
            if kind == "moved":
                moved.add(found.path)
            yield found._replace(kind=kind)

    def _move_apart(self, source: Path, target: Path) -> None:
        for name in self._apart:
            if (source / name).is_symlink() or (source / name).exists():
                (source / name).rename(target / name)

    def _mount(self, lower: Path) -> None:
        """Layers are named by descriptors: paths could be too long, or need to be escaped."""
        flags = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
        opened = [os.open(folder, flags) for folder in (lower, self.upper, self._work)]
        try:
            layers = "lowerdir=/proc/self/fd/{},upperdir=/proc/self/fd/{},workdir=/proc/self/fd/{}"
            options = f"{layers.format(*opened)},{_OPTIONS}"
            try:
                _mount(self._workspace, f"{options},volatile")  # needs not outlive the machine
            except OSError:
                _mount(self._workspace, options)
        finally:
            for descriptor in opened:
                os.close(descriptor)


def _remove_layers(folder: Path, prefix: str) -> None:
    """Of a runtime that was killed: the workspace is used again, so nobody wants them."""
    for name in os.listdir(folder):  # noqa: PTH208 names to be matched whole
        if re.fullmatch(rf"{re.escape(prefix)}\w{{8}}", name):
            remove_tree(folder / name)


def remove_leftovers() -> None:
    """Unmount what was mounted by runtimes that were killed; never raises `OSError`.

    What agent code had written stays beside the workspace, in the upper layer, until the workspace
    is used again.
    """
    with suppress(OSError):
        for point, owner in _ours():
            if is_gone(owner):
                with suppress(OSError):
                    _unmount(point)


def _ours() -> Iterator[tuple[Path, str]]:
    """Where overlays of runtimes are mounted, and whose they are."""
    for line in Path("/proc/self/mountinfo").read_bytes().splitlines():
        mount, _, rest = line.partition(b" - ")
        kind, source, *_ = rest.split(b" ")
        if kind == b"overlay" and source.startswith(_SOURCE.encode()):
            owner = _plain(source).decode(errors="replace").removeprefix(_SOURCE)
            yield Path(os.fsdecode(_plain(mount.split(b" ")[4]))), owner


def _plain(word: bytes) -> bytes:
    """As it was before spaces and their like were written in octal digits."""
    return re.sub(rb"\\([0-7]{3})", lambda found: bytes([int(found[1], 8)]), word)


def _kind(upper: Folders, found: Found) -> str:
    path, kind, status = found
    if stat.S_ISCHR(status.st_mode) and status.st_rdev == 0:
        return "hidden"
    if kind == "folder":
        folder = f"/proc/self/fd/{upper.at(path)}"
        if _mark(folder, "redirect"):
            return "moved"
        if _mark(folder, "opaque") == b"y":
            return "new"
    return kind


def _mark(folder: str, name: str) -> bytes:
    with suppress(OSError):
        return os.getxattr(folder, f"trusted.overlay.{name}")
    return b""


def _mount(point: Path, options: str) -> None:
    source = f"{_SOURCE}{this_process()}".encode()
    _call(
        _libc().mount,
        *(source, os.fsencode(point), b"overlay"),
        *(ctypes.c_ulong(_NOSUID | _NODEV), options.encode()),
    )


def _unmount(point: Path) -> None:
    try:
        _call(_libc().umount2, os.fsencode(point), 0)
    except OSError:  # somebody looks into it still
        _call(_libc().umount2, os.fsencode(point), _DETACH)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _call(function: object, *arguments: object) -> None:
    if function(*arguments) != 0:  # type: ignore[operator]
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
