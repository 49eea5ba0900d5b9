"""The buffer on disk: nothing that was observed is lost, nothing half is read."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from mle_ideator.errors import UsageError
from mle_ideator.rl.buffer.buffer import EvolvingBuffer
from mle_ideator.rl.buffer.config import CurriculumConfig
from mle_ideator.rl.buffer.disk import SAVE, KeptBuffer, load, save
from tests.rl import buffer_driver
from tests.rl.curriculum_states import card, key

ROOT = Path(__file__).parents[2]


def same(first: EvolvingBuffer, second: EvolvingBuffer) -> bool:
    """In everything, the random state and the order of all queues included."""
    one, other = first.state_dict(), second.state_dict()
    return all(np.array_equal(one[name], other[name]) for name in one)


def trained(buffer: EvolvingBuffer, steps: int = 12) -> EvolvingBuffer:
    for number in range(30):
        buffer.add(card(number, "ab"[number % 2]))
    for step in range(steps):
        for each in buffer.draw(4):
            buffer.observe(each.id, buffer_driver.reward(each.id, step))
    return buffer


def test_what_is_saved_is_loaded(tmp_path):
    buffer = trained(EvolvingBuffer(seed=1))
    save(buffer, tmp_path / "checkpoint")
    found = load(tmp_path / "checkpoint")
    assert same(found, buffer)
    assert found.draw(7) == buffer.draw(7)
    save(found, tmp_path / "checkpoint")
    assert same(load(tmp_path / "checkpoint"), found)


def test_an_empty_buffer_can_be_saved(tmp_path):
    save(EvolvingBuffer(), tmp_path)
    found = load(tmp_path)
    assert found.add(card(0)) == 0
    assert len(found.draw(2)) == 2


def test_what_was_done_since_the_save_is_done_again(tmp_path):
    with KeptBuffer(tmp_path, seed=3) as buffer:
        trained(buffer)
        buffer.return_retired()
        assert buffer.observe(key(77), [1.0]) is False
    with KeptBuffer(tmp_path, seed=99) as again:
        assert same(again, buffer)
    assert same(load(tmp_path), buffer)
    assert same(trained(EvolvingBuffer(seed=3), 0), load(tmp_path)) is False


def test_what_is_refused_is_not_written(tmp_path):
    with KeptBuffer(tmp_path) as buffer:
        buffer.add(card(0))
        for wrong in ([float("inf")], [-float("inf"), 1.0]):
            with pytest.raises(UsageError, match="finite"):
                buffer.observe(key(0), wrong)
        with pytest.raises(UsageError, match="64 hexadecimal"):
            buffer.observe("x", [1.0])
        buffer.observe(key(0), [np.float32(1.0), np.float64("nan"), True])
    assert same(load(tmp_path), buffer)
    assert load(tmp_path).explain(key(0)).masked == 1


def test_a_save_begins_a_new_log(tmp_path):
    with KeptBuffer(tmp_path) as buffer:
        trained(buffer)
        buffer.save()
        (log,) = tmp_path.glob("log-*.jsonl")
        assert log.stat().st_size == 0
        buffer.draw(2)
        assert log.stat().st_size > 0
    assert same(load(tmp_path), buffer)


def test_a_long_log_is_folded_into_a_save_when_it_is_opened(tmp_path, monkeypatch):
    with KeptBuffer(tmp_path) as buffer:
        trained(buffer)
        buffer.add(card(3))
    (log,) = tmp_path.glob("log-*.jsonl")
    calls = log.read_bytes().count(b"\n")
    assert calls == 30 + 12 + 12 * 4
    for most, left in ((calls, calls), (calls - 1, 0)):
        monkeypatch.setattr("mle_ideator.rl.buffer.disk._LONG_LOG", most)
        with KeptBuffer(tmp_path) as again:
            assert again.distribution().tolist() == buffer.distribution().tolist()
        (log,) = tmp_path.glob("log-*.jsonl")
        assert log.read_bytes().count(b"\n") == left


def test_a_line_that_a_crash_cut_is_left_out(tmp_path):
    with KeptBuffer(tmp_path) as buffer:
        trained(buffer)
    (log,) = tmp_path.glob("log-*.jsonl")
    log.write_bytes(log.read_bytes() + b'{"type":"observe","sta')
    assert same(load(tmp_path), buffer)
    with KeptBuffer(tmp_path) as again:
        again.draw(1)
    buffer.__class__ = EvolvingBuffer
    buffer.draw(1)
    assert same(load(tmp_path), buffer)


def test_a_line_that_is_damaged_is_said(tmp_path):
    with KeptBuffer(tmp_path) as buffer:
        trained(buffer)
    (log,) = tmp_path.glob("log-*.jsonl")
    log.write_bytes(b"{}\n" + log.read_bytes())
    with pytest.raises(UsageError, match=r"log-\d+\.jsonl, line 1 can not be read"):
        load(tmp_path)
    with pytest.raises(UsageError, match="line 1"):
        KeptBuffer(tmp_path)


def test_a_half_written_save_is_never_read(tmp_path):
    buffer = trained(EvolvingBuffer())
    save(buffer, tmp_path)
    (tmp_path / f"{SAVE}.part").write_bytes((tmp_path / SAVE).read_bytes()[:500])
    assert same(load(tmp_path), buffer)
    save(buffer, tmp_path)
    assert not (tmp_path / f"{SAVE}.part").exists()


@pytest.mark.parametrize("keep", [0, 100, 3000])
def test_a_damaged_save_is_said(tmp_path, keep):
    save(trained(EvolvingBuffer()), tmp_path)
    (tmp_path / SAVE).write_bytes((tmp_path / SAVE).read_bytes()[:keep])
    with pytest.raises(UsageError, match=r"buffer\.npz can not be read"):
        load(tmp_path)


def test_nothing_is_unpickled(tmp_path):
    np.savez(tmp_path / SAVE, meta=np.array([{"version": 1}], dtype=object))
    with pytest.raises(UsageError, match="can not be read"):
        load(tmp_path)


def test_a_folder_without_a_buffer_is_said(tmp_path):
    with pytest.raises(UsageError, match="holds no buffer"):
        load(tmp_path)


def test_only_one_process_writes(tmp_path):
    with KeptBuffer(tmp_path) as buffer:
        with pytest.raises(UsageError, match="in use"):
            KeptBuffer(tmp_path)
        with pytest.raises(UsageError, match="in use"):
            save(EvolvingBuffer(), tmp_path)
        buffer.add(card(1))
        assert len(load(tmp_path)) == 1
    with pytest.raises(UsageError, match="closed"):
        buffer.add(card(2))


def test_other_constants_hold_from_then_on(tmp_path):
    with KeptBuffer(tmp_path, CurriculumConfig()) as buffer:
        trained(buffer)
    uniform = CurriculumConfig(top_fraction=1.0)
    with KeptBuffer(tmp_path, uniform) as buffer:
        assert buffer.config == uniform
    with KeptBuffer(tmp_path) as buffer:
        assert buffer.config == uniform


def test_a_checkpoint_that_is_taken_up_again_is_kept(tmp_path):
    checkpoint = trained(EvolvingBuffer(seed=8)).state_dict()
    with KeptBuffer(tmp_path) as buffer:
        buffer.load_state_dict(checkpoint)
    assert load(tmp_path).draws == 12


def test_a_full_disk_leaves_no_half_line(tmp_path):
    """With a limit on the size of files: the call fails, and what was done before can be read."""
    script = f"""
import resource, signal, sys
sys.path.insert(0, {str(ROOT)!r})
from pathlib import Path
from mle_ideator.rl.buffer.disk import KeptBuffer
from tests.rl.curriculum_states import card
buffer = KeptBuffer(Path({str(tmp_path)!r}))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
try:
    for number in range(100):
        buffer.add(card(number))
except OSError:
    print(len(buffer))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stderr == ""
    assert 0 < int(done.stdout) < 100
    (log,) = tmp_path.glob("log-*.jsonl")
    assert log.read_bytes().endswith(b"\n")
    assert len(load(tmp_path)) == int(done.stdout)


def killed(folder: Path, seconds: float) -> int:
    """Kill a process that trains; returns how many calls it said were done."""
    told = folder.with_suffix(".txt")
    command = [sys.executable, "-m", "tests.rl.buffer_driver", str(folder)]
    with told.open("wb") as out, subprocess.Popen(command, cwd=ROOT, stdout=out) as process:
        while told.stat().st_size == 0 and process.poll() is None:
            time.sleep(0.005)
        time.sleep(seconds)
        process.kill()
    assert process.returncode == -9
    return int(told.read_bytes().split(b"\n")[-2])


def check_kill(folder: Path, seconds: float) -> None:
    """The buffer is what the same calls make of a new one, up to the last that was said done."""
    said = killed(folder, seconds)
    found = load(folder)
    expected = EvolvingBuffer(buffer_driver.CONFIG, seed=5)
    made = buffer_driver.calls(expected)
    for _ in range(said):
        next(made)
    assert same(found, expected) or (next(made) is None and same(found, expected))


@pytest.mark.parametrize("seconds", [0.05, 0.4])
def test_a_kill_loses_nothing(tmp_path, seconds):
    check_kill(tmp_path / "buffer", seconds)


@pytest.mark.slow
def test_many_kills_lose_nothing(tmp_path):
    moments = random.Random(os.environ.get("PYTEST_SEED", "0"))
    for number in range(25):
        check_kill(tmp_path / f"buffer-{number}", moments.uniform(0, 1.5))
