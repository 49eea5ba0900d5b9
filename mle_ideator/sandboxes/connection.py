"""The Jupyter messages between the runtime and one kernel."""

from __future__ import annotations

import asyncio
from typing import Any

import zmq
import zmq.asyncio
from jupyter_client.asynchronous.client import AsyncKernelClient

from mle_ideator.types import Execute

_LARGEST_MESSAGE = 256 * 1024 * 1024


class Connection:
    """Sends requests and matches their replies. `lost` is done once the kernel hung up."""

    def __init__(self, info: dict[str, Any]) -> None:
        self._context = zmq.asyncio.Context()
        self._context.setsockopt(zmq.LINGER, 0)
        self._context.setsockopt(zmq.RECONNECT_IVL, 5)
        self._context.setsockopt(zmq.MAXMSGSIZE, _LARGEST_MESSAGE)
        self._client = AsyncKernelClient(context=self._context)
        self._client.load_connection_info(info)  # type: ignore[arg-type]
        self._client.start_channels(iopub=False, stdin=False, hb=False)
        self._channels = (self._client.shell_channel, self._client.control_channel)
        self._watchers: list[asyncio.Task[None]] = []
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def ready(self) -> None:
        """Return when the kernel has really answered, on both channels."""
        for channel in self._channels:
            await self._ask(channel, "kernel_info_request", {})
            self._watchers.append(asyncio.create_task(self._watch(channel.socket)))

    async def execute(self, action: Execute) -> dict[str, Any]:
        """Run a cell and wait for the content of its reply."""
        content = {
            "code": action.code.encode(errors="replace").decode(),
            "silent": False,
            "store_history": False,
            "user_expressions": {},
            "allow_stdin": False,
            "stop_on_error": False,
        }
        metadata = {"language": action.language}
        return await self._ask(self._client.shell_channel, "execute_request", content, metadata)

    async def interrupt(self) -> None:
        """Interrupt the cell; returns when the kernel has sent itself the signal."""
        await self._ask(self._client.control_channel, "interrupt_request", {})

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
        metadata: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        message = self._client.session.msg(kind, content, metadata=metadata)
        channel.send(message)
        while True:
            try:
                reply = await channel.get_msg()
            except (ValueError, KeyError, TypeError):  # forged or garbled: not from the kernel
                self._hang_up()
                await asyncio.Future()
            if reply["parent_header"].get("msg_id") == message["header"]["msg_id"]:
                answer: dict[str, Any] = reply["content"]
                return answer

    async def _watch(self, socket: zmq.asyncio.Socket) -> None:
        monitor = socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        await monitor.recv_multipart()
        self._hang_up()

    def _hang_up(self) -> None:
        if not self.lost.done():
            self.lost.set_result(None)
