"""A kernel as ipykernel makes it, for any Jupyter tool: a fork of a fork server, without walls."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from . import preloading, system


def become(spec: dict[str, Any], descriptors: list[int]) -> Callable[[], Any]:
    """In the fork: what `python -m ipykernel_launcher ...` is, with these as input and outputs."""
    system.usual_signals()
    os.setsid()
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    system.prctl(system.PR_SET_DUMPABLE, 1)
    os.environ.clear()
    os.environ.update(spec["environment"], JPY_PARENT_PID=str(os.getppid()))
    os.chdir(spec["cwd"])
    sys.argv = list(spec["plain_kernel"])
    sys.orig_argv = [sys.executable, *sys.argv]
    preloading.freshen()
    return _serve


def _serve() -> int:
    from ipykernel.kernelapp import launch_new_instance

    launch_new_instance()
    return 0
