"""The Jupyter messages between the runtime and one kernel."""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

import msgspec
import zmq
import zmq.asyncio
from jupyter_client.asynchronous.client import AsyncKernelClient

from mle_ideator.sandboxes.reply import Answered, Reply, decoded
from mle_ideator.types import Execute

S = TypeVar("S", bound=msgspec.Struct)

# Replies are short and come one at a time. What agent code sends beyond that is not kept.
_LARGEST_MESSAGE = 1024 * 1024
_MOST_MESSAGES = 10
_REPORT_GRACE_S = 0.5


class Connection:
    """Sends requests and decodes their replies.

    `lost` is done, with the reason, once the kernel hung up or sent what is no reply.
    """

    def __init__(self, info: dict[str, Any]) -> None:
        self._context = zmq.asyncio.Context()
        self._context.setsockopt(zmq.LINGER, 0)
        self._context.setsockopt(zmq.RECONNECT_IVL, 5)
        self._context.setsockopt(zmq.MAXMSGSIZE, _LARGEST_MESSAGE)
        self._context.setsockopt(zmq.RCVHWM, _MOST_MESSAGES)
        self._client = AsyncKernelClient(context=self._context)
        self._client.load_connection_info(info)  # type: ignore[arg-type]
        self._client.start_channels(iopub=False, stdin=False, hb=False)
        self._channels = (self._client.shell_channel, self._client.control_channel)
        self._turns = {channel: asyncio.Lock() for channel in self._channels}
        self._watchers: list[asyncio.Task[None]] = []
        self.lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def ready(self) -> None:
        """Return when the kernel has really answered, on both channels."""
        requests = (self._ask(c, "kernel_info_request", {}, Answered) for c in self._channels)
        await asyncio.gather(*requests)
        for channel in self._channels:
            self._watchers.append(asyncio.create_task(self._watch(channel.socket)))

    async def execute(self, action: Execute) -> Reply:
        """Run a cell and wait for its reply."""
        content = {
            "code": action.code.encode(errors="replace").decode(),
            "silent": False,
            "store_history": False,
            "user_expressions": {},
            "allow_stdin": False,
            "stop_on_error": False,
        }
        metadata = {"language": action.language}
        return await self._ask(
            self._client.shell_channel, "execute_request", content, Reply, metadata
        )

    async def interrupt(self) -> None:
        """Interrupt the cell; returns when the kernel has sent itself the signal."""
        await self._ask(self._client.control_channel, "interrupt_request", {}, Answered)

    def close(self) -> None:
        for watcher in self._watchers:
            watcher.cancel()
        for channel in self._channels:
            channel.socket.disable_monitor()
        self._client.stop_channels()
        self._context.destroy(linger=0)
        self.lost.cancel()

    async def _ask(
        self,
        channel: Any,
        kind: str,
        content: dict[str, Any],
        expected: type[S],
        metadata: dict[str, Any] | None = None,
    ) -> S:
        """One request at a time on each channel, so the next message must be its reply."""
        message = self._client.session.msg(kind, content, metadata=metadata)
        async with self._turns[channel]:
            channel.send(message)
            try:
                return decoded(await channel.get_msg(), message["header"]["msg_id"], expected)
            except Exception:  # whatever agent code made of it: not from the kernel
                self._hang_up("it sent a garbled reply")
        return await asyncio.Future()

    async def _watch(self, socket: zmq.asyncio.Socket) -> None:
        monitor = socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        await monitor.recv_multipart()
        await asyncio.sleep(_REPORT_GRACE_S)  # if it died, its supervisor's report says more
        self._hang_up("it closed its connection")

    def _hang_up(self, why: str) -> None:
        if not self.lost.done():
            self.lost.set_result(why)
