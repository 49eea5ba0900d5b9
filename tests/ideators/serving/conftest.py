"""Servers as people start them: the command line, in a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx2
import msgspec
import pytest

HERE = Path(__file__).parent
TOKEN = "s3cret-t0ken"
MAIN = "from mle_ideator.cli import main\nmain()"
HEEDS_SIGINT = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
"""Whoever runs the tests in the background may have it ignored."""


class Server:
    """One server process, once it is up."""

    def __init__(self, folder: Path, *options: str, code: str = "") -> None:
        """`code` runs before the command, in the same process."""
        call = [sys.executable, "-c", f"{HEEDS_SIGINT}\n{code}\n{MAIN}", "serve"]
        if "--port" not in options:
            options += ("--port", "0")
        self.log = folder / f"server-{time.monotonic_ns()}.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [*call, "--json", *options],
                cwd=HERE,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert select.select([self.process.stdout], [], [], 30)[0], self.log.read_text()
        line = self.process.stdout.readline()
        assert line, self.log.read_text()
        self.told = json.loads(line)
        self.url = self.told["url"]
        self.port = int(self.url.rpartition(":")[2])

    def client(self, token: str | None = None) -> httpx2.AsyncClient:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        return httpx2.AsyncClient(
            base_url=self.url, headers=headers, trust_env=False, verify=False, timeout=30
        )

    async def metrics(self, token: str | None = None) -> dict[str, float]:
        """Samples by name and labels, as Prometheus reads them."""
        from prometheus_client.parser import text_string_to_metric_families

        async with self.client(token) as client:
            text = (await client.get("/metrics")).text
        return {
            " ".join([sample.name, *sample.labels.values()]): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    def tell(self, number: signal.Signals = signal.SIGTERM) -> None:
        self.process.send_signal(number)

    def ended(self, within_s: float = 15.0) -> tuple[int, str, str]:
        """Exit code, the rest of stdout, stderr."""
        rest, _ = self.process.communicate(timeout=within_s)
        return self.process.returncode, rest, self.log.read_text()

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        with contextlib.suppress(ValueError):
            self.process.communicate()


def outcomes(metrics: dict[str, float], route: str = "/v1/ideas") -> dict[str, int]:
    """How many requests of a route came to what."""
    found = {}
    for name, value in metrics.items():
        kind, *labels = name.split()
        if kind == "mle_ideator_requests_total" and labels[1] == route:
            found[labels[0]] = int(value)
    return found


@pytest.fixture
def start(tmp_path):
    """Start servers that end with the test."""
    servers = []

    def start(*options: str, code: str = "") -> Server:
        servers.append(Server(tmp_path, *options, code=code))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture(scope="module")
def token_file(tmp_path_factory) -> Path:
    file = tmp_path_factory.mktemp("token") / "token"
    file.touch(0o600)
    file.write_text(TOKEN + "\n")
    return file


@pytest.fixture(scope="module")
def guarded(tmp_path_factory, token_file):
    """An `Echo` that wants a token and takes small requests, for all tests of a module."""
    folder = tmp_path_factory.mktemp("guarded")
    options = ("--ideator", "served:Echo", "--token-file", str(token_file))
    server = Server(folder, *options, "--max-request-mb", "0.5")
    yield server
    server.close()


@pytest.fixture
def state(story, task):
    """A help state of a few steps."""
    return story(task()).solved("print('ä')", 0.5).idea("Use ratios.").solved("b = 2", 0.4).state()


@pytest.fixture
def asking(state):
    """The body of a request whose implementer says so."""

    def asking(problem: str = "The score stalls.") -> bytes:
        request = msgspec.structs.replace(state.request, problem=problem)
        return msgspec.json.encode(msgspec.structs.replace(state, request=request))

    return asking


JSON = {"content-type": "application/json"}


@pytest.fixture
def ask(asking):
    """POST a help state."""

    async def ask(client: httpx2.AsyncClient, problem: str = "") -> httpx2.Response:
        return await client.post("/v1/ideas", content=asking(problem), headers=JSON)

    return ask
