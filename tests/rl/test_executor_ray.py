"""The same promises on a real cluster: two nodes on this machine, started with `ray start`."""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import shutil
import socket
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path

import msgspec
import psutil
import pytest

from mle_ideator.rl.executor import Resources, ResultCache
from mle_ideator.rl.executor.cluster import RayExecutor
from tests.rl.test_executor import counted, is_alive, lines, noted, overlap, until, work
from tests.rl.test_executor_kills import (
    begun,
    counters,
    finished,
    start,
    wait_for_more,
    wait_until,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # Ray's own sockets and files
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]
RAY = str(Path(sys.executable).with_name("ray"))
PROTECTION_S = 240


@pytest.fixture(scope="module", autouse=True)
def _without_authentication():
    pytest.importorskip("ray")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "disabled")
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        yield


class Node:
    """One node: `ray start --block`, with a temporary folder of its own."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        folder.mkdir(exist_ok=True)
        self._folder = folder
        common = ("--block", "--num-cpus=2", "--node-ip-address=127.0.0.1")
        ports = ("--min-worker-port=0", "--max-worker-port=0")
        # what the test of a Ray of one's own has set keeps a cluster to one node
        more = {"TMPDIR": str(folder), "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "1"}
        with (folder / "output").open("wb") as output:
            self._process = subprocess.Popen(
                [RAY, "start", *common, *ports, *arguments],
                env={**os.environ, **more},
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def raylet(self) -> psutil.Process | None:
        """The process that is the node."""
        assert self._process.poll() is None, (self._folder / "output").read_text()
        for process in psutil.Process(self._process.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                if process.name() == "raylet":
                    return process
        return None

    def kill(self) -> None:
        if raylet := self.raylet():
            raylet.kill()

    def stop(self) -> None:
        with suppress(psutil.NoSuchProcess):
            for process in psutil.Process(self._process.pid).children(recursive=True):
                with suppress(psutil.NoSuchProcess):
                    process.kill()
        self._process.kill()
        self._process.wait()


@pytest.fixture
def cluster(tmp_path_factory):
    """An address, and two nodes; the driver joins the first."""
    folder = tmp_path_factory.mktemp("ray")
    port = random.Random(os.getpid()).randrange(20_000, 30_000)
    address = f"127.0.0.1:{port}"
    short = Path("/tmp") / f"r{port}"  # the paths of Ray's sockets must be short
    head = ("--head", f"--port={port}", "--include-dashboard=false", f"--temp-dir={short}")
    first = Node(folder / "first", *head)
    try:
        wait_until(lambda: listens(port), PROTECTION_S)
        second = Node(folder / "second", f"--address={address}")
        try:
            wait_until(lambda: second.raylet() is not None, PROTECTION_S)
            yield address, first, second
        finally:
            second.stop()
    finally:
        first.stop()
        shutil.rmtree(short, ignore_errors=True)


def listens(port: int) -> bool:
    with suppress(OSError):
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    return False


async def until_there_are(executor: RayExecutor, cores: int) -> None:
    await until(lambda: executor._budget.capacity.cores == cores, PROTECTION_S)


async def both_nodes_work(executor: RayExecutor) -> None:
    """Starting Ray's own processes takes a node seconds."""
    nodes: set[str] = set()
    while len(nodes) < 2:
        naps = [executor.submit(work("timed_sleep", b"0.3")) for _ in range(8)]
        nodes |= {done.node for done in await asyncio.gather(*naps)}


async def test_answers_limits_and_kills(tmp_path):
    """On a Ray that is started here."""
    async with RayExecutor(slots=2, cache=ResultCache(tmp_path / "cache")) as executor:
        assert (await executor.submit(work("echo", b"x" * 3_000_000))).value == b"x" * 3_000_000
        error = await executor.submit(work("raises", b"it is bad"))
        assert (error.status, error.tries) == ("error", 1)
        assert error.detail.startswith("ValueError: it is bad")
        pid = tmp_path / "pid"
        late = await executor.submit(work("hangs_with_family", str(pid).encode(), 3.0))
        assert (late.status, late.tries) == ("timeout", 1)
        assert not is_alive(int(pid.read_text()))
        assert (await executor.submit(work("hangs_in_c", limit_s=0.3))).status == "timeout"
        died = await executor.submit(counted("exits", tmp_path / "tries", 9))
        assert (died.status, died.tries) == ("died", 2)
        assert "my last words" in died.detail
        mended = await executor.submit(counted("breaks", tmp_path / "breaks", 1))
        assert (mended.status, mended.tries) == ("ok", 2)
        pid.unlink()
        cancelled = executor.submit(work("hangs_with_family", str(pid).encode()))
        await until(lambda: pid.exists() and pid.read_text())
        await executor.cancel(cancelled)
        await until(lambda: not is_alive(int(pid.read_text())))
        once = [executor.submit(noted(tmp_path / "begun", "a", 0.2)) for _ in range(3)]
        assert {done.value for done in await asyncio.gather(*once)} == {b"a"}
        assert (await executor.submit(noted(tmp_path / "begun", "a"))).cached
        assert len(lines(tmp_path / "begun")) == 1
        wide = [work("timed_sleep", b"0.3", resources=Resources(cores=2)) for _ in range(3)]
        assert overlap(await asyncio.gather(*map(executor.submit, wide))) == 1
        assert executor.counters().failed == {"error": 1, "timeout": 2, "died": 1}
        runs = executor.submit(work("hangs_with_family", str(tmp_path / "last").encode()))
        await until(lambda: (tmp_path / "last").exists() and (tmp_path / "last").read_text())
    assert runs.cancelled()
    await until(lambda: not is_alive(int((tmp_path / "last").read_text())))


async def test_inputs_travel_once_to_each_node(cluster, tmp_path):
    address, _, _ = cluster
    packed = tmp_path / "state"
    packed.write_bytes(os.urandom(1_000_000))
    async with RayExecutor(address) as executor:
        await until_there_are(executor, 4)
        asked = [work("slow_paths", inputs=(str(packed),)) for _ in range(16)]
        answers = await asyncio.gather(*map(executor.submit, asked))
    told = [msgspec.json.decode(done.value) for done in answers]
    by_node = {
        node: {path for done, (path, _) in zip(answers, told, strict=True) if done.node == node}
        for node in {done.node for done in answers}
    }
    assert len(by_node) == 2
    assert {len(paths) for paths in by_node.values()} == {1}
    assert {content for _, content in told} == {hash_of(packed)}
    assert [str(packed)] in [list(paths) for paths in by_node.values()]  # where it was already


def hash_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


async def test_a_node_that_is_killed_loses_nothing(cluster, tmp_path):
    address, _, second = cluster
    jobs, cache = 12, ResultCache(tmp_path / "cache")
    file = tmp_path / "begun"
    async with RayExecutor(address, cache=cache) as executor:
        await until_there_are(executor, 4)
        await both_nodes_work(executor)
        # Ray's processes outlive their node by a second or so: what ends by then is answered
        asked = [noted(file, f"job{n}", 0.2 if n < 4 else 6.0, key=str(n)) for n in range(jobs)]
        futures = [executor.submit(each) for each in asked]
        await until(lambda: len(lines(file)) >= 8, PROTECTION_S)
        second.kill()
        await asyncio.sleep(0.5)
        before = lines(file)
        done = {f"job{each.key}" for each in asked if cache.get(each.identity) is not None}
        answers = await asyncio.gather(*futures)
        assert [answer.value for answer in answers] == [f"job{n}".encode() for n in range(jobs)]
        executions = Counter(line.split()[0] for line in lines(file))
        retried = executor.counters().retried
        assert sum(executions.values()) <= jobs + retried
        assert 1 <= retried <= 4
        assert done
        assert not {line.split()[0] for line in lines(file)[len(before) :]} & done
        await until_there_are(executor, 2)


@pytest.mark.parametrize("seed", range(2))
def test_drivers_and_nodes_are_killed_at_random(cluster, tmp_path, seed):
    """What they had finished is in the cache, for the driver that comes next."""
    address, _, second = cluster
    chance, jobs = random.Random(seed), 60
    for victim in ("driver", "node", "nobody"):
        done, before = finished(tmp_path, jobs), len(begun(tmp_path))
        driver = start(address, tmp_path, jobs)
        wait_for_more(tmp_path, chance, driver)
        if victim == "node":
            second.kill()
        if victim == "driver":
            driver.kill()
            driver.wait()
            wait_until(lambda: not [pid for _, pid in begun(tmp_path) if is_alive(pid)])
        else:
            assert driver.wait(PROTECTION_S) == 0
        assert not {name for name, _ in begun(tmp_path)[before:]} & done
    assert finished(tmp_path, jobs) == {f"job{number}" for number in range(jobs)}
    assert counters(tmp_path).done + counters(tmp_path).cache_hits == jobs


async def test_the_drivers_own_node_is_killed(cluster, tmp_path):
    """Ray ends the driver; the next one finds what was finished."""
    address, first, _ = cluster
    jobs = 60
    driver = start(address, tmp_path, jobs)
    wait_for_more(tmp_path, random.Random(0), driver)
    first.kill()
    driver.wait(PROTECTION_S)
    wait_until(lambda: not [pid for _, pid in begun(tmp_path) if is_alive(pid)])
    done, before = finished(tmp_path, jobs), len(begun(tmp_path))
    assert start("local", tmp_path, jobs).wait(PROTECTION_S) == 0
    assert not {name for name, _ in begun(tmp_path)[before:]} & done
    assert counters(tmp_path).cache_hits == len(done)
