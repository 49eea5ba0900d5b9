"""A supervisor as the first process of a container.

Its lifeline and its reports are named pipes in a folder that is mounted read-only, so that agent
code, which runs as the same user, can neither open them nor take their place: once the keeper is
there, nobody may.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from mle_ideator.errors import SandboxError
from mle_ideator.sandboxes.containers.daemon import Container, Daemon
from mle_ideator.sandboxes.launching import close_descriptor
from mle_ideator.sandboxes.limits.group_reader import GroupReader
from mle_ideator.sandboxes.limits.hierarchies import groups_of
from mle_ideator.sandboxes.limits.usage import Counts
from mle_ideator.sandboxes.placement import Placement
from mle_ideator.sandboxes.threads import in_thread
from mle_ideator.sandboxes.trees import remove_tree
from mle_ideator.waiting import finish

SEEN_AS = "/run/supervisor"
LIFELINE, REPORTS, OUTPUT = "lifeline", "reports", "output"
_CONNECTED = 'exec "$@" <"$0"/lifeline >"$0"/reports 2>"$0"/output'
_END_S = 0.5
_LONGEST_REPORT = 64 * 1024


class ContainerGroup(GroupReader):
    """Tells what was counted last, once the container is gone and its files with it."""

    ended_for_memory = False
    _last = Counts()

    def counts(self) -> Counts:
        found, last = super().counts(), self._last
        self._last = Counts(
            max(found.killed_for_memory, last.killed_for_memory),
            max(found.forks_refused, last.forks_refused),
        )
        killed = self._last.killed_for_memory + self.ended_for_memory
        return Counts(killed, self._last.forks_refused)


class ContainerProcess:
    """Starts the container that `describe` says for a command, and ends it.

    `folder` is made with the pipes, to be mounted read-only at `SEEN_AS`; its `output` is a link to
    the pipe `output`. `give` hands files to the container's user. An ended container is removed by
    a task in `removals`: what follows need not wait for that.
    """

    def __init__(
        self,
        daemon: Daemon,
        describe: Callable[[Sequence[str]], Container],
        folder: Path,
        output: Path,
        give: Callable[[Path], None],
        removals: set[asyncio.Task[None]],
    ) -> None:
        self._daemon, self._describe = daemon, describe
        self._folder, self._output, self._give = folder, output, give
        self._removals = removals
        self._identity = ""
        self._lifeline = self._reports = self._exit = -1
        self._gone = asyncio.Event()
        self.group = ContainerGroup(())
        self.pid = 0

    async def start(self, placement: Placement, output: int) -> None:
        """`output` is not needed: the container opens the pipe by its name."""
        self._said = asyncio.StreamReader(limit=_LONGEST_REPORT)
        self._make_pipes()
        container = self._describe(
            [
                *("/bin/sh", "-c", _CONNECTED, SEEN_AS),
                *(placement.python, "-I", "-S", f"{placement.programs}/start.py"),
                *("supervisor", json.dumps(placement.supervisor())),
            ]
        )
        loading = in_thread(import_module, "mle_ideator.sandboxes.connection")
        creating = in_thread(self._create, container)
        _, pid = await asyncio.gather(loading, finish(creating))
        self._watch(pid)

    def send(self, command: bytes) -> None:
        with suppress(OSError):
            os.write(self._lifeline, command)

    async def reports(self) -> AsyncIterator[bytes]:
        with suppress(ValueError):  # a line too long: not from the supervisor
            async for line in self._said:
                if line.startswith(b"ready"):
                    self._shut_pipes()
                yield line
        if await self._ended_for_memory():  # so badly that the supervisor went, too
            self.group.ended_for_memory = True
            yield f"gone {-signal.SIGKILL}\n".encode()

    async def end(self) -> None:
        """The lifeline first: that is the fastest, and needs nobody."""
        lifeline, self._lifeline = self._lifeline, -1
        close_descriptor(lifeline)
        if self._exit >= 0 and not self._gone.is_set():
            await self._wait_until_gone()
        if self._exit >= 0 and not self._gone.is_set():
            with suppress(OSError):  # all in the container end with it
                signal.pidfd_send_signal(self._exit, signal.SIGKILL)
            await self._wait_until_gone()
        self._forget()
        removal = asyncio.create_task(finish(in_thread(self._remove)))
        self._removals.add(removal)
        removal.add_done_callback(self._removals.discard)
        if not self._gone.is_set():
            await asyncio.wait({removal})

    # ------------------------------------------------------------------------- its parts

    async def _wait_until_gone(self) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._gone.wait(), _END_S)

    def _make_pipes(self) -> None:
        self._folder.mkdir(mode=0o700)
        os.link(self._output, self._folder / OUTPUT)
        for name in (LIFELINE, REPORTS):
            os.mkfifo(self._folder / name, 0o600)
        # both ends of the lifeline, so that opening it waits for nobody
        flags = os.O_NONBLOCK | os.O_CLOEXEC
        self._lifeline = os.open(self._folder / LIFELINE, os.O_RDWR | flags)
        self._reports = os.open(self._folder / REPORTS, os.O_RDONLY | flags)
        self._give(self._folder)

    def _shut_pipes(self) -> None:
        for name in (LIFELINE, REPORTS):
            (self._folder / name).chmod(0)

    def _create(self, container: Container) -> int:
        """In a thread. What was created is known to `end` even if the start was given up."""
        self._identity = self._daemon.create(container)
        return self._daemon.start(self._identity)

    def _watch(self, pid: int) -> None:
        """Hear its reports and its end."""
        loop = asyncio.get_running_loop()
        try:
            self._exit = os.pidfd_open(pid) if pid else -1
        except ProcessLookupError:
            pid = 0
        if not pid:
            said = self._daemon.logs(self._identity)[-500:] or "nothing"
            raise SandboxError(f"the container ended at once. It wrote: {said}")
        self.pid = pid
        self.group = ContainerGroup(groups_of(pid))
        loop.add_reader(self._exit, self._ended)
        loop.add_reader(self._reports, self._hear)

    def _hear(self) -> None:
        with suppress(BlockingIOError):
            data = os.read(self._reports, _LONGEST_REPORT)
            if data:
                self._said.feed_data(data)
            else:
                self._ended()

    def _ended(self) -> None:
        self._gone.set()
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._exit)
        loop.remove_reader(self._reports)
        self._said.feed_eof()

    def _forget(self) -> None:
        loop = asyncio.get_running_loop()
        descriptors = (self._exit, self._reports)
        self._exit = self._reports = -1
        for descriptor in descriptors:
            if descriptor >= 0:
                loop.remove_reader(descriptor)
                close_descriptor(descriptor)

    async def _ended_for_memory(self) -> bool:
        """As the daemon has heard: the group that counted is gone with the container."""
        with suppress(SandboxError):
            return await in_thread(self._daemon.ran_out_of_memory, self._identity)
        return False

    def _remove(self) -> None:
        """What can not be removed now is a leftover, and removed by a later run."""
        with suppress(SandboxError):
            if self._identity:
                self._daemon.remove(self._identity)
        remove_tree(self._folder)
