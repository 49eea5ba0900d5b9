"""Calls over stdio, for an agent that starts this process: stdout carries the protocol only."""

from __future__ import annotations

import asyncio
import io
import os
import signal

import anyio
from mcp.server.stdio import stdio_server

from mle_ideator.ideators.mcp_server.half_characters import mended
from mle_ideator.ideators.mcp_server.tool import SeekHelpTool


async def serve(tool: SeekHelpTool) -> None:
    """Answer until the agent closes stdin or a signal comes."""
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    serving = asyncio.create_task(_serve(tool))
    stopping = asyncio.create_task(stopped.wait())
    await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
    await tool.aclose()
    if not serving.done():
        # A thread waits for stdin and can not be told to stop: the process would never end.
        os._exit(0)
    stopping.cancel()
    await serving


class _Mended(io.TextIOWrapper):
    """Lines of JSON that can be read."""

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]
        return mended(super().readline(size))


def _wire() -> _Mended:
    """The real stdin; whoever else reads meanwhile, a child of an ideator say, finds its end."""
    wire = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return _Mended(os.fdopen(wire, "rb", closefd=False), encoding="utf-8", errors="replace")


async def _serve(tool: SeekHelpTool) -> None:
    async with stdio_server(stdin=anyio.wrap_file(_wire())) as (incoming, outgoing):
        await tool.server.run(incoming, outgoing, tool.server.create_initialization_options())
