"""A worker process: runs the cells that it is given, one after the other.

`python -P -m mle_ideator.benchmarks.runner.worker` reads an `Order` a line on stdin and writes a
`Reply` a line on stdout. When stdin ends, the session that is under way is ended in order and the
process ends: so no worker outlives its runner. Whatever else is printed goes to stderr.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Any

import msgspec

from mle_ideator.benchmarks.runner.cell import CellEnd, Order, run_cell
from mle_ideator.types import Value

LONGEST_LINE = 16 * 1024 * 1024


class Reply(Value, frozen=True):
    """A step that was taken, or the end of the cell."""

    step: int | None = None
    end: CellEnd | None = None


def main() -> None:
    replies = os.dup(1)
    os.dup2(2, 1)
    # The runner says when to stop: a Ctrl-C at its terminal is its business.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asyncio.run(_serve(replies))


async def _serve(replies: int) -> None:
    orders = asyncio.StreamReader(limit=LONGEST_LINE)
    protocol = asyncio.StreamReaderProtocol(orders)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    line = asyncio.create_task(orders.readline())
    while order := await line:
        line = asyncio.create_task(orders.readline())
        await _run(msgspec.json.decode(order, type=Order), line, replies)


async def _run(order: Order, more: asyncio.Task[bytes], replies: int) -> None:
    """Run a cell; if stdin ends meanwhile, so does its session."""
    cell = asyncio.create_task(run_cell(order, lambda step: _write(replies, Reply(step=step))))
    await asyncio.wait({cell, more}, return_when=asyncio.FIRST_COMPLETED)
    if not cell.done():
        cell.cancel()
        await asyncio.wait({cell})
    if not cell.cancelled():
        _write(replies, Reply(end=cell.result()))


def _write(replies: int, value: Any) -> None:
    line = memoryview(msgspec.json.encode(value) + b"\n")
    try:
        while line:
            line = line[os.write(replies, line) :]
    except BrokenPipeError:
        pass  # the runner is gone; stdin tells as much


if __name__ == "__main__":
    main()
