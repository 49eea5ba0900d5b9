"""`kill -9` at random moments: nothing is lost, nothing that was finished runs twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import msgspec
import psutil
import pytest

from mle_ideator.rl.executor import Counters, ResultCache
from tests.rl.executor_driver import work

ROOT = Path(__file__).parents[2]
PROTECTION_S = 120


def start(where: str, folder: Path, jobs: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.rl.executor_driver", where, str(folder), str(jobs)]
    return subprocess.Popen(command, cwd=ROOT)


def begun(folder: Path) -> list[tuple[str, int]]:
    """Every execution: the job, and the process."""
    file = folder / "begun"
    lines = file.read_text().splitlines() if file.exists() else []
    return [(name, int(pid)) for name, pid in map(str.split, lines)]


def finished(folder: Path, jobs: int) -> set[str]:
    cache = ResultCache(folder / "cache")
    numbers = (number for number in range(jobs) if cache.get(work(folder, number).identity))
    return {f"job{number}" for number in numbers}


def workers_of(folder: Path) -> set[int]:
    """Processes that ever began a job, and are not gone."""
    return {pid for _, pid in begun(folder) if psutil.pid_exists(pid)}


def wait_until(condition, seconds: float = PROTECTION_S) -> None:
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.005)


def wait_for_more(folder: Path, chance: random.Random, driver: subprocess.Popen[bytes]) -> None:
    """A random moment, in which something was begun."""
    wanted = len(begun(folder)) + chance.randrange(1, 12)
    wait_until(lambda: len(begun(folder)) >= wanted or driver.poll() is not None)
    time.sleep(chance.random() * 0.05)


def kill_drivers(folder: Path, jobs: int, seed: int, kills: int) -> int:
    """Start a driver, kill it, start the next; returns what the last one found in the cache."""
    chance = random.Random(seed)
    for kill in range(kills + 1):
        done, before = finished(folder, jobs), len(begun(folder))
        driver = start("local", folder, jobs)
        if kill < kills:
            wait_for_more(folder, chance, driver)
            driver.kill()
            driver.wait()
            wait_until(lambda: not workers_of(folder))
        else:
            assert driver.wait(PROTECTION_S) == 0
        assert not {name for name, _ in begun(folder)[before:]} & done
        assert finished(folder, jobs) >= done
    return len(done)


def counters(folder: Path) -> Counters:
    return msgspec.json.decode((folder / "counters").read_bytes(), type=Counters)


def test_what_a_killed_driver_had_finished_is_not_done_again(tmp_path):
    jobs = 30
    hits = kill_drivers(tmp_path, jobs, seed=1, kills=2)
    assert finished(tmp_path, jobs) == {f"job{number}" for number in range(jobs)}
    assert counters(tmp_path).cache_hits == hits > 0
    assert counters(tmp_path).done == jobs - hits


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_driver_is_killed_many_times(tmp_path, seed):
    jobs = 150
    hits = kill_drivers(tmp_path, jobs, seed, kills=12)
    assert finished(tmp_path, jobs) == {f"job{number}" for number in range(jobs)}
    assert counters(tmp_path).cache_hits == hits > 0


def kill_workers(folder: Path, jobs: int, seed: int, kills: int) -> None:
    """Each killed worker costs at most the one execution that it had."""
    chance = random.Random(seed)
    driver = start("local", folder, jobs)
    killed = 0
    while killed < kills and driver.poll() is None:
        wait_for_more(folder, chance, driver)
        if victims := sorted(workers_of(folder)):
            os.kill(chance.choice(victims), signal.SIGKILL)
            killed += 1
    assert driver.wait(PROTECTION_S) == 0
    assert finished(folder, jobs) == {f"job{number}" for number in range(jobs)}
    executions = Counter(name for name, _ in begun(folder))
    assert set(executions) == {f"job{number}" for number in range(jobs)}
    assert sum(executions.values()) <= jobs + counters(folder).retried
    assert counters(folder).retried <= killed
    assert counters(folder).done == jobs
    assert killed


def test_killed_workers_lose_nothing(tmp_path):
    kill_workers(tmp_path, jobs=30, seed=1, kills=3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_workers_are_killed_many_times(tmp_path, seed):
    kill_workers(tmp_path, jobs=200, seed=seed, kills=25)


def test_all_that_a_killed_driver_had_started_is_gone(tmp_path):
    driver = start("local", tmp_path, 500)
    wait_until(lambda: len(begun(tmp_path)) > 4)
    workers = workers_of(tmp_path)
    guards = {psutil.Process(pid).ppid() for pid in workers}
    assert workers
    driver.kill()
    driver.wait()
    wait_until(lambda: not any(map(psutil.pid_exists, workers | guards)))
