"""A Jupyter kernel provisioner: kernels that are forks of a warm process, for any Jupyter tool.

A kernel specification that names it,

    "metadata": {"kernel_provisioner": {"provisioner_name": "mle-ideator-warm",
                                        "config": {"preload": ["numpy", "pandas"]}}}

gets the kernel that it would get otherwise, with the modules of `preload` imported already. It is
no sandbox: its code can do what the tool's user can. Where a fork can not be had, the kernel is
started as usual, and the log says so.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning.local_provisioner import LocalProvisioner
from traitlets import List, Unicode

from mle_ideator.errors import SandboxError
from mle_ideator.protocols import PRELOADED
from mle_ideator.sandboxes.launching import has_ended
from mle_ideator.sandboxes.threads import in_thread
from mle_ideator.sandboxes.warm import fork_server

_LAUNCHER = ("-m", "ipykernel_launcher")
_OF_ONE_KERNEL = ("JPY_", "MLE_IDEATOR_")
_log = logging.getLogger(__name__)


class WarmProvisioner(LocalProvisioner):
    """Everything but the start is that of a kernel on this machine."""

    preload = List(
        Unicode(), list(PRELOADED), help="modules to import before the first kernel is needed"
    ).tag(config=True)

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        """Fork it; a command that is no plain ipykernel of this Python is started as usual."""
        try:
            arguments = _arguments(cmd)
            forked = await in_thread(_fork, arguments, tuple(self.preload), kwargs)
        except SandboxError as error:
            _log.warning("the kernel starts cold: %s", error)
            return await super().launch_kernel(cmd, **kwargs)
        self.process = forked  # type: ignore[assignment]  # it has what is used of one
        self.pid = self.pgid = forked.pid
        self.cwd = kwargs.get("cwd")
        return self.connection_info


class _ForkedKernel:
    """A process that is not this one's child, as `LocalProvisioner` handles those that are."""

    stdin = stdout = stderr = None

    def __init__(self, pid: int, watched: int) -> None:
        self.pid, self._watched = pid, watched

    def poll(self) -> int | None:
        """0 once it has ended: only its parent, the fork server, could know how."""
        if self._watched >= 0 and has_ended(self._watched):
            os.close(self._watched)
            self._watched = -1
        return None if self._watched >= 0 else 0

    def wait(self) -> int:
        if self._watched >= 0:
            has_ended(self._watched, wait=True)
        return self.poll() or 0

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._watched, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _arguments(cmd: Sequence[str]) -> list[str]:
    """What follows the program's name. Raises `SandboxError` if it is another program."""
    program, *words = cmd
    if Path(program).absolute() != Path(sys.executable) or tuple(words[:2]) != _LAUNCHER:
        raise SandboxError(f"only `{sys.executable} {' '.join(_LAUNCHER)}` can be a fork")
    return ["ipykernel_launcher", *words[2:]]


def _fork(
    arguments: list[str], modules: tuple[str, ...], options: Mapping[str, Any]
) -> _ForkedKernel:
    given = options.get("env")
    environment = dict(os.environ if given is None else given)
    common = {
        name: value for name, value in environment.items() if not name.startswith(_OF_ONE_KERNEL)
    }
    spec = {
        "plain_kernel": arguments,
        "environment": environment,
        "cwd": options.get("cwd") or os.getcwd(),  # noqa: PTH109 as it is named
    }
    standard = [_descriptor(options.get(name), own) for name, own in _STANDARD]
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123
        descriptors = [nothing.fileno() if number < 0 else number for number in standard]
        server = fork_server(common, modules)
        return _ForkedKernel(*server.fork(spec, descriptors, whole=True))


_STANDARD = (("stdin", -1), ("stdout", 1), ("stderr", 2))


def _descriptor(wanted: Any, own: int) -> int:
    """Of a standard stream, as `subprocess.Popen` takes them; -1: nothing. A pipe is not made."""
    if wanted is None:
        return own
    if wanted in (subprocess.PIPE, subprocess.DEVNULL, subprocess.STDOUT):
        return -1
    return int(wanted if isinstance(wanted, int) else wanted.fileno())
