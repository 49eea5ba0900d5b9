"""Calls over stdio, for an agent that starts this process: stdout carries the protocol only."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from mcp.server.stdio import stdio_server

from mle_ideator.ideators.mcp_server.tool import SeekHelpTool


@contextmanager
def stdout_kept_clean() -> Iterator[None]:
    """What is printed meanwhile, by whatever means, goes to stderr."""
    sys.stdout.flush()
    wire = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(wire, 1)
        os.close(wire)


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


async def _serve(tool: SeekHelpTool) -> None:
    async with stdio_server() as (incoming, outgoing):
        await tool.server.run(incoming, outgoing, tool.server.create_initialization_options())
