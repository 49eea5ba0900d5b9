"""What an executor promises, on this machine: answers, limits, kills, merging, cache, retries."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import msgspec
import psutil
import pytest

from mle_ideator.errors import UsageError
from mle_ideator.rl.executor import Resources, ResultCache, Work
from mle_ideator.rl.executor.local import LocalExecutor
from tests.rl.executor_work import SELF

PROTECTION_S = 60


def work(name: str, argument: bytes = b"", limit_s: float = PROTECTION_S, **more) -> Work:
    return Work(function=f"{SELF}:{name}", argument=argument, limit_s=limit_s, **more)


def noted(file: Path, name: str, seconds: float = 0.0, key: str | None = "k", how="noted") -> Work:
    argument = msgspec.json.encode([str(file), name, seconds])
    return work(how, argument, key=key)


def counted(name: str, file: Path, times: int, **more) -> Work:
    return work(name, msgspec.json.encode([str(file), times]), **more)


def lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


async def until(condition, seconds: float = PROTECTION_S) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 what other processes do
            await asyncio.sleep(0.01)


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


# ------------------------------------------------------------------------------ answers


async def test_work_is_answered_by_workers_that_live_on(tmp_path):
    (tmp_path / "a").write_bytes(b"one")
    (tmp_path / "b").write_bytes(b"two")
    async with LocalExecutor(1) as executor:
        large = os.urandom(3_000_000)
        done = await executor.submit(work("echo", large))
        assert (done.status, done.value, done.tries, done.cached) == ("ok", large, 1, False)
        inputs = (str(tmp_path / "a"), str(tmp_path / "b"))
        assert (await executor.submit(work("add_up", inputs=inputs))).value == b"onetwo"
        pids = {(await executor.submit(work("process"))).value for _ in range(5)}
        assert len(pids) == 1
        assert executor.counters().done == 7


RAISED = {
    "raises": "ValueError: it is bad",
    "leaves": "SystemExit: 3",
    "returns_text": "returned str, not bytes",
    "is_not_there": "has no attribute 'is_not_there'",
}


async def test_what_a_function_raises_is_an_error_and_not_tried_again():
    async with LocalExecutor(1) as executor:
        for name, said in RAISED.items():
            done = await executor.submit(work(name, b"it is bad"))
            assert (done.status, done.tries) == ("error", 1)
            assert said in done.detail.splitlines()[0]
        assert (await executor.submit(work("echo", b"x"))).value == b"x"
        assert executor.counters().failed == {"error": len(RAISED)}


async def test_an_input_that_is_not_there_is_told(tmp_path):
    async with LocalExecutor(1) as executor:
        done = await executor.submit(work("add_up", inputs=(str(tmp_path / "gone"),)))
        assert done.status == "error"
        assert "gone" in done.detail.splitlines()[0]


IMPOSSIBLE = [
    Work(function="__main__:main", limit_s=1),
    Work(function="no_colon", limit_s=1),
    Work(function="a:b", limit_s=0),
    Work(function="a:b", limit_s=1, resources=Resources(cores=2)),
    Work(function="a:b", limit_s=1, resources=Resources(gpus=1)),
    Work(function="a:b", limit_s=1, resources=Resources(memory_gib=9)),
    Work(function="a:b", limit_s=1, resources=Resources(cores=0)),
    Work(function="a:b", limit_s=1, resources=Resources(cores=-1)),
]


async def test_what_can_never_run_is_refused():
    async with LocalExecutor(1, memory_gib=8) as executor:
        for bad in IMPOSSIBLE:
            with pytest.raises(UsageError):
                executor.submit(bad)
    with pytest.raises(UsageError, match="not open"):
        executor.submit(work("echo"))


# ------------------------------------------------------------------- limits, hangs, crashes


@pytest.mark.parametrize("name", ["hangs_in_c", "hangs_with_family"])
async def test_a_hang_is_killed_with_all_that_it_started(name, tmp_path):
    async with LocalExecutor(1) as executor:
        file = tmp_path / "pid"
        limit_s = 0.3 if name == "hangs_in_c" else 2.0
        done = await executor.submit(work(name, str(file).encode(), limit_s))
        assert (done.status, done.tries) == ("timeout", 1)
        assert done.seconds < PROTECTION_S
        assert file.exists() == (name == "hangs_with_family")
        assert not (file.exists() and is_alive(int(file.read_text())))
        assert (await executor.submit(work("echo", b"x"))).value == b"x"


async def test_the_clock_starts_when_execution_does():
    async with LocalExecutor(1) as executor:
        first = executor.submit(work("timed_sleep", b"1.5"))
        second = await executor.submit(work("timed_sleep", b"0.1", limit_s=1.0))
        assert (await first).status == "ok"
        assert second.status == "ok"
        assert second.waited_s > 1.0


async def test_a_limit_holds_while_the_event_loop_is_held_up(tmp_path):
    file = tmp_path / "begun"
    async with LocalExecutor(1) as executor:
        argument = msgspec.json.encode([str(file), "a", 600])
        future = executor.submit(work("noted", argument, limit_s=0.2))
        await until(lambda: lines(file))
        ends = time.monotonic() + PROTECTION_S
        while is_alive(int(lines(file)[0].split()[1])):  # as a training step does to its loop
            assert time.monotonic() < ends
            time.sleep(0.01)  # noqa: ASYNC251
        assert (await future).status == "timeout"


async def test_what_crashes_twice_is_given_up_and_its_last_words_are_told(tmp_path):
    async with LocalExecutor(1) as executor:
        done = await executor.submit(counted("exits", tmp_path / "tries", 9))
        assert (done.status, done.tries) == ("died", 2)
        assert "ended with code 7" in done.detail.splitlines()[0]
        assert "my last words" in done.detail
        assert len(lines(tmp_path / "tries")) == 2
        assert executor.counters().failed == {"died": 1}
        assert executor.counters().retried == 1


async def test_a_worker_that_dies_once_is_replaced(tmp_path):
    async with LocalExecutor(1) as executor:
        done = await executor.submit(counted("exits", tmp_path / "tries", 1))
        assert (done.status, done.value, done.tries) == ("ok", b"well", 2)


async def test_a_segfault_is_told():
    async with LocalExecutor(1, deaths=1) as executor:
        done = await executor.submit(work("segfaults"))
        assert done.status == "died"
        assert "SIGSEGV" in done.detail.splitlines()[0]
        assert "in segfaults" in done.detail


async def test_a_broken_runtime_is_tried_again_but_not_for_ever(tmp_path):
    async with LocalExecutor(1) as executor:
        mended = await executor.submit(counted("breaks", tmp_path / "a", 2))
        assert (mended.status, mended.tries) == ("ok", 3)
        broken = await executor.submit(counted("breaks", tmp_path / "b", 9))
        assert (broken.status, broken.tries) == ("infra_error", 3)
        assert broken.detail.startswith("SandboxError: the sandbox is gone")
        assert len(lines(tmp_path / "b")) == 3


async def test_a_worker_with_a_pool_of_threads_is_used_again():
    async with LocalExecutor(1) as executor:
        pids = [(await executor.submit(work("keeps_a_pool"))).value for _ in range(3)]
    assert len(set(pids)) == 1


async def test_a_worker_with_a_thread_that_never_ends_is_not_used_again():
    async with LocalExecutor(1) as executor:
        first = await executor.submit(work("leaves_a_thread"))
        assert first.status == "ok"
        second = await executor.submit(work("process"))
        assert second.value != first.value
        assert not is_alive(int(first.value))


async def test_a_worker_that_loses_its_connection_is_ended():
    async with LocalExecutor(1, deaths=1) as executor:
        assert (await executor.submit(work("closes_everything"))).status == "died"
        assert (await executor.submit(work("echo", b"x"))).value == b"x"


async def test_an_idle_worker_that_was_killed_is_nobodys_fault():
    async with LocalExecutor(1) as executor:
        pid = int((await executor.submit(work("process"))).value)
        os.kill(pid, 9)
        await until(lambda: not is_alive(pid))
        await asyncio.sleep(0.3)
        done = await executor.submit(work("process"))
        assert (done.status, done.tries) == ("ok", 1)


async def test_what_a_killed_function_left_in_its_temporary_folder_is_removed(tmp_path):
    async with LocalExecutor(1) as executor:
        file = tmp_path / "name"
        future = executor.submit(work("leaves_a_file", str(file).encode(), limit_s=1.0))
        assert (await future).status == "timeout"
        assert not Path(file.read_text()).exists()


# ---------------------------------------------------------------------- cancelling, closing


async def test_cancelled_work_is_killed_and_waiting_work_never_begins(tmp_path):
    async with LocalExecutor(1) as executor:
        pid, begun = tmp_path / "pid", tmp_path / "begun"
        runs = executor.submit(work("hangs_with_family", str(pid).encode()))
        waits = executor.submit(noted(begun, "waits"))
        await until(lambda: pid.exists() and pid.read_text())
        await executor.cancel(waits)
        await executor.cancel(runs)
        assert runs.cancelled()
        assert waits.cancelled()
        assert not is_alive(int(pid.read_text()))
        assert (await executor.submit(work("echo", b"x"))).value == b"x"
        assert not begun.exists()
        assert executor.counters().running == executor.counters().waiting == 0


async def test_closing_kills_what_runs_and_cancels_what_waits(tmp_path):
    pid = tmp_path / "pid"
    async with LocalExecutor(1) as executor:
        futures = [executor.submit(work("hangs_with_family", str(pid).encode())) for _ in "ab"]
        await until(lambda: pid.exists() and pid.read_text())
    assert all(future.cancelled() for future in futures)
    assert not is_alive(int(pid.read_text()))


# ------------------------------------------------------------------- merging and the cache


async def test_identical_work_in_flight_is_run_once(tmp_path):
    file = tmp_path / "begun"
    async with LocalExecutor(2) as executor:
        futures = [executor.submit(noted(file, "a", 0.3)) for _ in range(5)]
        futures[0].cancel()  # the others still wait for it
        answers = await asyncio.gather(*futures[1:])
        assert {done.value for done in answers} == {b"a"}
        assert len(lines(file)) == 1
        assert executor.counters().merged == 4
        await asyncio.gather(*(executor.submit(noted(file, "a", key=None)) for _ in range(3)))
        assert len(lines(file)) == 4


async def test_the_last_one_who_waits_and_cancels_ends_merged_work(tmp_path):
    file = tmp_path / "begun"
    async with LocalExecutor(1) as executor:
        futures = [executor.submit(noted(file, "a", 600)) for _ in range(2)]
        await until(lambda: lines(file))
        for future in futures:
            await executor.cancel(future)
        pid = int(lines(file)[0].split()[1])
        assert not is_alive(pid)
        assert (await executor.submit(noted(file, "b"))).value == b"b"


async def test_results_outlive_the_executor(tmp_path):
    file, cache = tmp_path / "begun", ResultCache(tmp_path / "cache")
    for hits in (0, 1):
        async with LocalExecutor(1, cache=cache) as executor:
            done = await executor.submit(noted(file, "a"))
            assert (done.value, done.cached) == (b"a", bool(hits))
            assert executor.counters().cache_hits == hits
    assert len(lines(file)) == 1


async def test_a_damaged_result_is_computed_anew(tmp_path):
    file, cache = tmp_path / "begun", ResultCache(tmp_path / "cache")
    wanted, damages = noted(file, "a"), (b"", b"short", b"x" * 32 + b"a")
    async with LocalExecutor(1, cache=cache) as executor:
        await executor.submit(wanted)
        for damage in damages:
            cache.path(wanted.identity).write_bytes(damage)
            done = await executor.submit(wanted)
            assert (done.value, done.cached) == (b"a", False)
            assert (await executor.submit(wanted)).cached
    assert len(lines(file)) == 1 + len(damages)


async def test_only_final_results_of_ok_work_are_kept(tmp_path):
    file, cache = tmp_path / "begun", ResultCache(tmp_path / "cache")
    async with LocalExecutor(1, cache=cache) as executor:
        for _ in range(2):
            assert (await executor.submit(noted(file, "a", how="noted_not_final"))).value == b"a"
            assert (await executor.submit(work("raises", b"x", key="e"))).status == "error"
        assert len(lines(file)) == 2
        assert executor.counters().cache_hits == 0


async def test_what_another_process_finished_meanwhile_is_not_done_again(tmp_path):
    file, cache = tmp_path / "begun", ResultCache(tmp_path / "cache")
    async with LocalExecutor(1, cache=cache) as executor:
        first = executor.submit(noted(file, "other", 0.3, key=None))
        second = noted(file, "a", key="theirs")
        future = executor.submit(second)
        cache.put(second.identity, b"of another process")
        assert (await future).value == b"of another process"
        assert (await future).cached
        await first
        assert len(lines(file)) == 1
        assert executor.counters().cache_hits == 1


async def test_a_cache_that_can_not_be_written_is_told(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="is unusable"):
        await LocalExecutor(1, cache=ResultCache(tmp_path / "file")).__aenter__()


def test_a_cache_clears_away_what_was_half_written_long_ago(tmp_path):
    cache = ResultCache(tmp_path)
    cache.prepare()
    old, new = tmp_path / "incoming" / "old", tmp_path / "incoming" / "new"
    for part in (old, new):
        part.touch()
    os.utime(old, (0, 0))
    cache.prepare()
    assert (old.exists(), new.exists()) == (False, True)


# ------------------------------------------------------------------------------- resources


def overlap(answers) -> int:
    """How many ran at once, at most."""
    spans = [msgspec.json.decode(done.value) for done in answers]
    return max(sum(a <= begin < b for a, b in spans) for begin, _ in spans)


async def test_no_more_runs_at_once_than_there_is_room_for():
    room = [
        (Resources(), 4),
        (Resources(cores=2), 2),
        (Resources(cores=3), 1),
        (Resources(memory_gib=0.4), 2),
    ]
    async with LocalExecutor(4, memory_gib=1.0) as executor:
        for resources, at_once in room:
            asked = [work("timed_sleep", b"0.3", resources=resources) for _ in range(5)]
            answers = await asyncio.gather(*map(executor.submit, asked))
            assert overlap(answers) == at_once


async def test_each_work_sees_its_own_gpus_and_no_others():
    async with LocalExecutor(2, gpus=["3", "GPU-b"]) as executor:
        one = [work("gpus", b"0.5", resources=Resources(gpus=1)) for _ in range(2)]
        values = {done.value for done in await asyncio.gather(*map(executor.submit, one))}
        assert values == {b"3", b"GPU-b"}
        both = await executor.submit(work("gpus", resources=Resources(gpus=2)))
        assert both.value == b"3,GPU-b"
        assert (await executor.submit(work("gpus"))).value == b""
