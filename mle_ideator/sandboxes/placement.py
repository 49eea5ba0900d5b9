"""How a backend wants a sandbox to be started, and what its programs are told."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mle_ideator.sandboxes.environment import MARK, user_packages

PROGRAMS = Path(__file__).parent / "programs"


@dataclass(frozen=True, kw_only=True)
class Placement:
    """Where the keeper runs. Paths are as the sandbox sees them where nothing else is said."""

    environment: Mapping[str, str]
    cwd: str
    """Where the supervisor is started, as this machine names it."""
    workspace: str
    folder: Path
    """Where the sockets lie, as this machine names it."""
    seen_as: str
    """The same folder."""
    programs: str
    """The folder `programs`."""
    rlimits: Mapping[str, int]
    """Resource limits by name, as in `resource`."""
    groups: tuple[str, ...] = ()
    """Files that let a process into the control groups, as this machine names them."""
    preload: tuple[str, ...] = ()
    python: str = sys.executable
    wrapper: tuple[str, ...] = ()
    """Words put before the keeper's command: they make the walls."""
    walls: Path | None = None
    """The same walls as a file with bubblewrap's options, for a fork to enter."""
    bubblewrap: str = ""
    """The program that makes them, as this machine names it."""
    walled: bool = True
    """Is agent code to be kept from what neither walls nor missing rights keep it from?"""
    no_new_privileges: bool = True

    def keeper(self) -> dict[str, Any]:
        """What the keeper is told."""
        return {
            "folder": self.seen_as,
            "workspace": self.workspace,
            "preload": self.preload,
            "walled": self.walled,
        }

    def supervisor(self) -> dict[str, Any]:
        """What the supervisor is told, if the keeper is a program that it starts."""
        start = f"{self.programs}/start.py"
        return {
            "no_new_privileges": self.no_new_privileges,
            "rlimits": dict(self.rlimits),
            "groups": self.groups,
            "command": [
                *(*self.wrapper, self.python, *own_libraries_only()),
                *(start, "keeper", json.dumps(self.keeper())),
            ],
        }

    def fork(self) -> dict[str, Any]:
        """What a fork server is told: the supervisor and the keeper are to be forks of it."""
        inside = {"bwrap": self.bubblewrap, "options": str(self.walls), "cwd": self.workspace}
        return {
            **self.supervisor(),
            "keeper": self.keeper(),
            "environment": dict(self.environment),
            "mark": MARK,
            "cwd": self.cwd,
            "walls": inside if self.walls else None,
        }


def own_libraries_only() -> tuple[str, ...]:
    """Nothing that agent code left in its workspace or its home has a part in a start."""
    return ("-P",) if user_packages() else ("-P", "-s")
