"""The commands of a sandbox's own, first on its path: `python`, which may start warm, and `job`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

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
    """Make `folder`; the paths are as the sandbox sees them."""
    folder.mkdir(mode=0o755)
    paths = {"python": shlex.quote(python), "programs": shlex.quote(programs)}
    names = ("python", "python3", f"python3.{sys.version_info.minor}")
    for name, text in {**dict.fromkeys(names, _SCRIPT), "job": _JOB}.items():
        command = folder / name
        command.write_text(text.format(**paths))
        command.chmod(0o755)
