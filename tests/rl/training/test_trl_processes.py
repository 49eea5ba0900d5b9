"""TRL's trainer in processes of their own: killed at random moments, and two that share a run."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl")

from transformers import AutoModelForCausalLM

from mle_ideator.rl.buffer import disk
from tests.rl.training.letters import tiny

pytestmark = pytest.mark.slow

DRIVER = ["-m", "tests.rl.training.trl_driver"]
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
TWO = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]


def command(run: Path, model: Path, steps: int, *changes: str, two: bool = False) -> list[str]:
    launcher = TWO if two else []
    return [sys.executable, *launcher, *DRIVER, str(run), str(model), str(steps), *changes]


def finished(*args: Any, **kwargs: Any) -> None:
    done = subprocess.run(
        command(*args, **kwargs), env=ENVIRONMENT, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr[-4000:]


def metrics(run: Path) -> list[dict[str, float]]:
    """Without times."""
    lines = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    return [{name: value for name, value in line.items() if name[-2:] != "_s"} for line in lines]


def weights(run: Path) -> dict[str, list[float]]:
    found = AutoModelForCausalLM.from_pretrained(run / "checkpoint").state_dict()
    return {name: values.flatten().tolist() for name, values in found.items()}


def killed(run: Path, model: Path, steps: int, chance: random.Random, *changes: str) -> None:
    """Started, and killed some time after one of its first steps."""
    with subprocess.Popen(
        command(run, model, steps, *changes),
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        for _ in range(chance.randint(1, 2)):
            process.stdout.readline()
        time.sleep(chance.uniform(0, 0.7))
        process.kill()


def test_killed_at_random_moments_nothing_is_trained_twice(tmp_path: Path) -> None:
    model, steps = tiny(tmp_path / "model"), 9
    often = "checkpoints__every=1"
    chance = random.Random(5)
    finished(tmp_path / "once", model, steps, often)
    for _ in range(3):
        killed(tmp_path / "again", model, steps, chance, often)
    finished(tmp_path / "again", model, steps, often)
    undisturbed, again = metrics(tmp_path / "once"), metrics(tmp_path / "again")
    assert [line["step"] for line in again] == list(range(1, steps + 1))
    assert again == undisturbed
    assert weights(tmp_path / "again") == weights(tmp_path / "once")


def test_two_processes_share_a_run(tmp_path: Path) -> None:
    """A group is written by both, and stays whole; what the answers of both reached arrives; and it
    is gone on with exactly."""
    model, ideas, states = tiny(tmp_path / "model"), 4, 3
    shape = [f"writing__ideas_per_state={ideas}", f"objective__states_per_step={states}"]
    shape.append("checkpoints__every=2")
    finished(tmp_path / "once", model, 4, *shape, two=True)
    batches = [
        list(map(json.loads, (tmp_path / f"once/rank-{rank}.jsonl").read_text().splitlines()))
        for rank in (0, 1)
    ]
    assert [len(of_rank) for of_rank in batches] == [4, 4]
    reached: set[tuple[str, str]] = set()
    for first, second in zip(*batches, strict=True):
        assert first["rewards"] == second["rewards"]
        assert len(first["states"]) == len(second["states"]) == ideas * states // 2
        rows = {name: first[name] + second[name] for name in ("states", "prompts", "texts")}
        groups = [rows["states"][start : start + ideas] for start in range(0, 12, ideas)]
        assert all(len(set(group)) == 1 for group in groups)
        assert [f"State {state[:4]}" for state in rows["states"]] == rows["prompts"]
        assert len(set(rows["texts"])) > 6  # each process draws its own answers
        reached |= set(zip(rows["states"], rows["texts"], strict=True))
        good = ["e" in text for text in rows["texts"]]
        assert all(
            reward == 1.0
            for reward, e in zip(first["rewards"], good, strict=True)
            if e and reward >= 0
        )
    buffer = disk.load((tmp_path / "once/checkpoint").resolve() / "buffer")
    assert len(buffer) == 6 + len(reached)
    finished(tmp_path / "twice", model, 2, *shape, two=True)
    finished(tmp_path / "twice", model, 4, *shape, two=True)
    assert metrics(tmp_path / "twice") == metrics(tmp_path / "once")
    assert weights(tmp_path / "twice") == weights(tmp_path / "once")
