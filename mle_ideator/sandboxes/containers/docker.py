"""A sandbox in a Docker container: an image of its own, no network, and limits on what it uses."""

from __future__ import annotations

import asyncio
import math
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self, cast

from mle_ideator.errors import SandboxError, UsageError
from mle_ideator.protocols import SandboxRequest
from mle_ideator.sandboxes.accounts import write_accounts
from mle_ideator.sandboxes.containers.container import SEEN_AS, ContainerProcess
from mle_ideator.sandboxes.containers.daemon import Container, Daemon, Mount
from mle_ideator.sandboxes.containers.handing import User, hand_over, hand_over_new, readable_copy
from mle_ideator.sandboxes.containers.inside import Inside, covered, look_inside
from mle_ideator.sandboxes.environment import environment
from mle_ideator.sandboxes.facts import bound_bytes, gpus
from mle_ideator.sandboxes.kernel import KernelSandbox
from mle_ideator.sandboxes.launching import Launched
from mle_ideator.sandboxes.limits.gpus import visible_gpus
from mle_ideator.sandboxes.limits.group_reader import GroupReader
from mle_ideator.sandboxes.limits.rlimits import rlimits
from mle_ideator.sandboxes.placement import PROGRAMS, Placement
from mle_ideator.sandboxes.private import OUTPUT
from mle_ideator.sandboxes.threads import at_once, in_thread
from mle_ideator.sandboxes.trees import make_usable
from mle_ideator.types import SandboxInfo, Value
from mle_ideator.waiting import finish

DEFAULT_IMAGE = "mle-ideator/sandbox"
_COLD_START = "a container imports the packages itself; its later kernels and scripts are forks"
_WORKSPACE = "/workspace"
_KERNEL = "/run/kernel"
_PROGRAMS = "/run/programs"
_COMMANDS = "/run/bin"
_HOME = "/home/agent"
_OWN_PROCESSES = 2
"""Supervisor and keeper."""
_OF_THIS_MACHINE = (
    *("LD_LIBRARY_PATH", "PYTHONUSERBASE", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"),
    *("NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES"),
)
_LIMITS = {
    "MemoryLimit": "memory: this daemon can not limit it",
    "CpuCfsQuota": "processors: this daemon can not limit them",
    "PidsLimit": "the number of processes: this daemon can not limit it",
}


class DockerOptions(Value, frozen=True, kw_only=True):
    """What a container is made from; what it may use is in `SandboxRequest`."""

    image: str = DEFAULT_IMAGE
    """With Python 3.11 or later and ipykernel; `docker:IMAGE` sets it, too."""
    temporary_gib: float = 8.0
    """Most that /tmp and the home may hold, each. They lie in memory and count as such."""


class DockerSandbox(KernelSandbox):
    """The kernel runs in a container, as a user without rights, on an image's Python."""

    kind = "docker"
    network = False
    covers = (
        "network: there is none, not even to this machine",
        "files: only the workspace can be written, and /tmp and a home that end with it; "
        "the host's files are not there, the image can not be changed",
        "answers: no task's data is there but the inputs",
        "inputs: mounted read-only",
        "processes: the code sees and reaches only its own; all end with it",
        "environment variables: none of the runtime's keys and tokens are passed on",
        "privileges: no capability, none can be gained; Docker's filter of system calls",
        "limits: memory, processors, number of processes, disk, time of a cell, size of a file, "
        "size of the output, no core dumps",
    )
    does_not_cover = (
        "the Linux kernel: all share it, so a hole in it is a hole in the sandbox",
        "the daemon: whoever may use it is as good as root on this machine (agent code may not)",
    )
    options: ClassVar[DockerOptions] = DockerOptions()
    Options = DockerOptions

    @classmethod
    def configured(cls, argument: str | None, options: DockerOptions) -> type[Self]:
        """The same with options; `argument` is the image. Raises `UsageError`."""
        values = {name: getattr(options, name) for name in options.__struct_fields__}
        if not 0 < options.temporary_gib < math.inf:
            raise UsageError(
                "option of the docker sandbox: temporary_gib must be more than 0, and finite."
            )
        if argument is not None:
            values["image"] = argument
        if not values["image"]:
            raise UsageError("docker: needs the name of an image after the colon, or no colon.")
        changed = {"options": DockerOptions(**values), "__doc__": cls.__doc__}
        return cast(type[Self], type(cls.__name__, (cls,), changed))

    @classmethod
    def unavailable(cls) -> str | None:
        if sys.platform != "linux":
            return "it needs Linux"
        try:
            with Daemon() as daemon:
                image = daemon.image(cls.options.image)
                lacks = look_inside(daemon, image).lacks()
        except SandboxError as error:
            return str(error)
        return lacks and f"the image {image.name!r} can not be used: {lacks}"

    @classmethod
    def anticipate(cls, threads: int, gpus: str | None, preload: tuple[str, ...]) -> None:
        """Nothing: an image has its own Python."""

    # ------------------------------------------------------------------------- Sandbox

    def __init__(self, request: SandboxRequest) -> None:
        super().__init__(request)
        self._daemon: Daemon | None = None
        self._inside: Inside | None = None
        self._removals: set[asyncio.Task[None]] = set()
        self._started = 0

    @property
    def info(self) -> SandboxInfo:
        if self._inside is None:
            try:
                self._connect()
            finally:
                self._disconnect()
        inside = cast(Inside, self._inside)
        cores = len(os.sched_getaffinity(0))
        return SandboxInfo(
            kind=self.kind,
            python=inside.python,
            libraries=inside.libraries,
            cores=min(cores, math.ceil(self._request.limits.cpus or cores)),
            memory_gib=round(bound_bytes(self._request.limits) / 2**30, 1),
            gpus=gpus(None if self._gpus() == "all" else self._gpus()),
            network=self.network,
            covers=self.covers,
            does_not_cover=self.does_not_cover + self._not_held(),
            cold_start=_COLD_START,
        )

    async def __aenter__(self) -> Self:
        try:
            await finish(in_thread(self._connect))
            return await super().__aenter__()
        except BaseException:
            self._disconnect()
            raise

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            await super().__aexit__(kind, error, traceback)
        finally:
            self._disconnect()

    # ------------------------------------------------------------------- for the engine

    async def _catch_up(self) -> list[str]:
        await finish(at_once(hand_over_new, self._workspace, self._user))
        return await super()._catch_up()

    def _put_right(self) -> None:
        super()._put_right()
        hand_over(self._workspace, self._user)  # what was put back

    async def _forget(self) -> None:
        """In the container that is there: a new one would import all packages again."""
        if not await self._interior.clear():
            await super()._forget()

    async def _close(self) -> None:
        await super()._close()
        await asyncio.gather(*self._removals, return_exceptions=True)

    def _connect(self) -> None:
        """Ask the daemon all that must be known before the container."""
        daemon = self._daemon = Daemon()
        daemon.remove_leftovers()
        self._image = daemon.image(self.options.image)
        self._inside = look_inside(daemon, self._image)
        self._facts = daemon.facts()
        rootless = any("rootless" in option for option in self._facts.get("SecurityOptions") or ())
        self._user = User.for_containers(rootless=rootless)

    def _disconnect(self) -> None:
        if self._daemon is not None:
            self._daemon.close()
            self._daemon = None

    def _prepare(self) -> None:
        make_usable(self._workspace / "input")
        hand_over(self._workspace, self._user)
        self._accounts = write_accounts(
            self._private.path / "etc", user=self._user.uid, group=self._user.gid, home=_HOME
        )
        self._shown_inputs = readable_copy(self._inputs, self._private.path / "inputs", self._user)
        self._programs = readable_copy(PROGRAMS, self._private.path / "programs", self._user)
        hand_over(self._private.kernels, self._user)

    def _place(self) -> Placement:
        inside = cast(Inside, self._inside)
        common = environment(
            home=_HOME,
            temporary="/tmp",  # noqa: S108 its own
            commands=_COMMANDS,
            threads=self._request.threads,
            mark=self._private.mark,
        )
        own = {name: value for name, value in common.items() if name not in _OF_THIS_MACHINE}
        return Placement(
            environment={**own, "PATH": f"{_COMMANDS}:{inside.path}"},
            cwd=_WORKSPACE,
            workspace=_WORKSPACE,
            folder=self._private.kernels,
            seen_as=_KERNEL,
            programs=_PROGRAMS,
            rlimits=rlimits(self._request.limits, grouped=True),
            preload=self._request.preload,
            python=inside.executable,
        )

    def _launch(self, placement: Placement) -> ContainerProcess:
        self._started += 1
        pipes = self._private.path / f"supervisor-{self._started}"
        hand_over(self._private.commands, self._user)

        def describe(command: Sequence[str]) -> Container:
            limits = self._request.limits
            return Container(
                name=f"mle-ideator-{self._private.mark}-{self._started}",
                image=self._image.id,
                command=tuple(command),
                user=str(self._user),
                environment=placement.environment,
                mounts=tuple(self._mounts(pipes)),
                temporary=self._temporary(),
                cwd=placement.cwd,
                memory_bytes=bound_bytes(limits),
                cpus=limits.cpus,
                processes=limits.processes + _OWN_PROCESSES,
                gpus=self._gpus(),
            )

        return ContainerProcess(
            cast(Daemon, self._daemon),
            describe,
            folder=pipes,
            output=self._private.path / OUTPUT,
            give=lambda path: hand_over(path, self._user),
            removals=self._removals,
        )

    def _new_group(self) -> None:
        """The daemon makes it."""

    def _group_of(self, launched: Launched) -> GroupReader | None:
        group = cast(ContainerProcess, launched).group
        held = group.counts_memory and not self._not_held()
        return group if held else None

    def _not_held(self) -> tuple[str, ...]:
        return tuple(words for name, words in _LIMITS.items() if not self._facts.get(name))

    def _mounts(self, pipes: Path) -> Iterator[Mount]:
        private = self._private
        yield Mount(source=str(self._workspace), target=_WORKSPACE, writable=True)
        yield Mount(source=str(self._shown_inputs), target=f"{_WORKSPACE}/input")
        yield Mount(source=str(private.kernels), target=_KERNEL, writable=True)
        yield Mount(source=str(pipes), target=SEEN_AS)
        yield Mount(source=str(self._programs), target=_PROGRAMS)
        yield Mount(source=str(private.commands), target=_COMMANDS)
        for inside, here in self._accounts.items():
            yield Mount(source=here, target=inside)
        for path, is_folder in self._covered().items():
            if not is_folder:
                yield Mount(source=os.devnull, target=path)

    def _temporary(self) -> dict[str, str]:
        gib = min(self.options.temporary_gib, self._request.limits.disk_gib)
        size = int(gib * 2**30)
        user = self._user
        own = f"rw,exec,nosuid,nodev,size={size},mode=0700,uid={user.uid},gid={user.gid}"
        covers = {path: "ro,size=4k" for path, is_folder in self._covered().items() if is_folder}
        return {**covers, _HOME: own, "/tmp": own.replace("mode=0700", "mode=1777")}  # noqa: S108

    def _covered(self) -> dict[str, bool]:
        return covered(self._request.masked, cast(Inside, self._inside))

    def _gpus(self) -> str:
        """`all`, ids, or nothing."""
        visible = visible_gpus(self._request.gpus or "")
        return os.environ.get("CUDA_VISIBLE_DEVICES", "all") if visible is None else visible
