"""How `mle-ideator serve` holds up: 64 clients at once, and more than it has places for.

    python -m tests.performance.bench_serve [IDEATOR]

Without IDEATOR it serves a scripted model that answers after 50 ms. Targets: no failure, the 99th
percentile under 3 times the median; overload answers 503 with `Retry-After`, and whatever was
accepted is answered.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

import httpx2
import msgspec

from tests.ideators.conftest import Story, a_task

CLIENTS = 64
REQUESTS = 20
STEPS = 20
SCRIPT = {
    "latency_s": 0.05,
    "replies": [
        "<analysis>Refine: the model is linear.</analysis>\n"
        "<action>Use gradient boosting.</action>\n<rationale>Trees find steps.</rationale>"
    ],
}
JSON = {"content-type": "application/json"}


def help_state() -> bytes:
    """A session of 20 steps with 2 kB of output each, and a solution after every second one."""
    story = Story(a_task(description="Predict y from x. " * 100))
    for number in range(STEPS // 2):
        story.cell("a line of output, as cells print it\n" * 56)
        story.solved("import pandas as pd\n" * 50, 1 / (1 + number))
    return msgspec.json.encode(story.state())


@contextmanager
def server(ideator: str, *options: str) -> Iterator[httpx2.URL]:
    """The URL of a server in a process of its own, which has to end in order."""
    call = ("serve", "--ideator", ideator, "--port", "0", "--json", *options)
    with subprocess.Popen(
        [sys.executable, "-m", "mle_ideator", *call], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield httpx2.URL(json.loads(process.stdout.readline())["url"])
        process.terminate()
        assert process.wait(30) == 0, "the server did not end in order"


async def warm(url: httpx2.URL, body: bytes) -> None:
    """The first request imports and compiles."""
    async with httpx2.AsyncClient(trust_env=False) as http:
        (await http.post(url.join("/v1/ideas"), content=body, headers=JSON)).raise_for_status()


class Answer(NamedTuple):
    """What one request got, and after how many seconds."""

    status: int
    head: str
    content: bytes
    seconds: float


async def load(url: httpx2.URL, body: bytes) -> tuple[list[Answer], float]:
    """The answers that all clients got, and the seconds of all together."""
    gate = asyncio.Event()

    async def client() -> list[Answer]:
        streams = await asyncio.open_connection(url.host, url.port)
        await gate.wait()
        answers = [await _asked(*streams, body) for _ in range(REQUESTS)]
        streams[1].close()
        return answers

    clients = [asyncio.create_task(client()) for _ in range(CLIENTS)]
    await asyncio.sleep(0.5)
    start = time.perf_counter()
    gate.set()
    answers = await asyncio.gather(*clients)
    return [answer for each in answers for answer in each], time.perf_counter() - start


async def _asked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes) -> Answer:
    """One request by bare HTTP: a client library would take the processor from the server."""
    start = time.perf_counter()
    head = (
        "POST /v1/ideas HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    )
    writer.write(head.encode() + body)
    told = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = int(told.split("content-length: ")[1].split("\r\n")[0])
    content = await reader.readexactly(length)
    return Answer(int(told.split()[1]), told, content, time.perf_counter() - start)


def counted(url: httpx2.URL) -> Counter[str]:
    """The server's own count of ideas and refusals."""
    lines = httpx2.get(url.join("/metrics"), trust_env=False).text.splitlines()
    return Counter(
        {
            outcome: int(float(line.split()[-1]))
            for line in lines
            for outcome in ("idea", "busy", "gone")
            if line.startswith(f'mle_ideator_requests_total{{outcome="{outcome}"')
        }
    )


async def crowd(ideator: str, body: bytes) -> None:
    with server(ideator) as url:
        await warm(url, body)
        answers, seconds = await load(url, body)
    failed = [a for a in answers if a.status != 200 or not json.loads(a.content)["idea"]]
    times = [1000 * answer.seconds for answer in answers]
    p99 = quantiles(times, n=100)[98]
    print(f"{CLIENTS} clients at once, {len(answers)} requests of {len(body) / 1000:.0f} kB:")
    print(f"  failures {len(failed)}, {len(answers) / seconds:.0f} requests/s")
    print(f"  median {median(times):.0f} ms, p99 {p99:.0f} ms, ", end="")
    print(f"p99/median {p99 / median(times):.2f} (target < 3), longest {max(times):.0f} ms")


async def overload(ideator: str, body: bytes) -> None:
    with server(ideator, "--concurrency", "8", "--queue", "16") as url:
        await warm(url, body)
        answers, _ = await load(url, body)
        server_says = counted(url) - Counter(idea=1)  # the first one
    statuses = Counter(answer.status for answer in answers)
    refused = [answer for answer in answers if answer.status == 503]
    told = sum("retry-after: " in answer.head for answer in refused)
    after = median([1000 * answer.seconds for answer in refused] or [0])
    print(f"{CLIENTS} clients, 8 at work and 16 waiting at most, {len(answers)} requests:")
    shares = ", ".join(f"{code}: {n / len(answers):.0%}" for code, n in sorted(statuses.items()))
    print(f"  {shares}; of {len(refused)} refusals {told} with Retry-After, after {after:.0f} ms")
    print(
        f"  accepted {server_says['idea'] + server_says['gone']}, answered {statuses[200]}", end=""
    )
    print(f"; refused {server_says['busy']}, told {statuses[503]}")


async def main(ideator: str | None) -> None:
    body = help_state()
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "script.json")
        script.write_text(json.dumps(SCRIPT))
        spec = ideator or f"prompted:scripted:{script}"
        await crowd(spec, body)
        await overload(spec, body)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else None))
