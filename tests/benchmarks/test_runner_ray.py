"""The matrix on a Ray that is started here: the same cells, the same rule for what breaks."""

import asyncio
import signal
import sys

import msgspec
import pytest

from mle_ideator.benchmarks.runner import ray_engine
from mle_ideator.benchmarks.runner.folders import run_folder
from mle_ideator.benchmarks.runner.plan import read_plan
from mle_ideator.benchmarks.runner.ray_engine import RayEngine
from mle_ideator.benchmarks.runner.states import read_state
from mle_ideator.config import RunConfig
from mle_ideator.errors import RuntimeFailure, UsageError
from mle_ideator.journal import Ended, read_journal
from tests.benchmarks.test_runner import (
    asked_for,
    assert_each_done_once,
    of,
    results,
    start_runner,
    wait_until,
)

__all__ = ["results"]


def on_ray(results, asked):
    """Run it in a process of its own; what broke, a line each."""
    pytest.importorskip("ray")
    runner = start_runner(results, asked, "ray")
    output, errors = runner.communicate(timeout=500)
    assert runner.returncode == 0, errors
    return output.splitlines()


def test_without_ray_the_command_to_get_it_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match=r"pip install 'mle-ideator\[ray\]'"):
        asyncio.run(RayEngine(None, 1, RunConfig()).__aenter__())


def test_a_config_says_what_a_cell_takes():
    engine = RayEngine(None, None, RunConfig(threads=3))
    assert engine.fitted(RunConfig(), 0).threads == 3
    assert RayEngine(None, None, RunConfig()).fitted(RunConfig(), 5).threads == 1
    assert ray_engine._assigned(None) is None
    assert ray_engine._assigned("") == ""


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1"])
def test_where_nobody_listens_is_told_at_once(address):
    with pytest.raises(RuntimeFailure, match=f"the Ray cluster {address} can not be reached"):
        asyncio.run(RayEngine(address, 1, RunConfig()).__aenter__())


@pytest.mark.slow
def test_what_breaks_and_what_is_killed_is_tried_again(results):
    agents = asked_for("FailsTwice").implementers + asked_for("KillsOnce").implementers
    broke = on_ray(results, msgspec.structs.replace(asked_for(), implementers=agents))
    assert_each_done_once(results, resumed=True)
    assert sorted(line.partition(":")[0] for line in broke) == [
        "WorkerCrashedError",
        "the sandbox is gone",
        "the sandbox is gone",
    ]


@pytest.mark.slow
def test_ctrl_c_ends_sessions_in_order_and_they_go_on(results, tmp_path):
    pytest.importorskip("ray")
    asked = asked_for("Waits")
    runner = start_runner(results, asked, "ray")
    wait_until((tmp_path / "waits-0").exists, 300)
    runner.send_signal(signal.SIGINT)
    runner.communicate(timeout=120)
    cell = read_plan(results).cells()[0]
    assert of(Ended, read_journal(run_folder(results, cell)))[-1].outcome == "interrupted"
    assert read_state(results, cell).status == "queued"
    (tmp_path / "go").touch()
    assert on_ray(results, asked) == []
    assert_each_done_once(results, resumed=True)


@pytest.mark.slow
def test_a_cell_that_fits_nowhere_is_refused(results):
    pytest.importorskip("ray")
    asked = asked_for()
    many = msgspec.structs.replace(asked, config={**asked.config, "threads": 10_000})
    runner = start_runner(results, many, "ray")
    errors = runner.communicate(timeout=300)[1]
    assert runner.returncode == 1
    assert "a cell needs 10000 cores and 0 GPUs on one node, but the cluster has" in errors
