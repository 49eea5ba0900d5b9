"""The commands of a sandbox's own, first on its path: `python`, which may start warm, and `job`."""

from __future__ import annotations

import shlex
import stat
import sys
from pathlib import Path

from mle_ideator.sandboxes.trees import make_usable, remove_tree

_SCRIPT = """#!/bin/sh
case "$1$2" in
-u-* | -u) ;;
-u?* | [!-]*) exec {python} -I -S {programs}/client.py "$@" ;;
esac
exec {python} "$@"
"""
_JOB = """#!/bin/sh
exec {python} -I -S {programs}/start.py job "$@"
"""


def put_commands(folder: Path, python: str, programs: str) -> None:
    """Make `folder` hold these and nothing else; the paths are as the sandbox sees them."""
    make_usable(folder)
    paths = {"python": shlex.quote(python), "programs": shlex.quote(programs)}
    names = ("python", "python3", f"python3.{sys.version_info.minor}")
    texts = {**dict.fromkeys(names, _SCRIPT.format(**paths)), "job": _JOB.format(**paths)}
    for entry in folder.iterdir():
        if entry.name not in texts or not _holds(entry, texts[entry.name]):
            remove_tree(entry)
            entry.unlink(missing_ok=True)
    for name, text in texts.items():
        if not (command := folder / name).exists():
            command.write_text(text)
            command.chmod(0o755)


def _holds(command: Path, text: str) -> bool:
    """Agent code may have changed it, where there are no walls."""
    status = command.lstat()
    whole = stat.S_ISREG(status.st_mode) and status.st_mode & 0o777 == 0o755
    return whole and command.read_text(errors="replace") == text
