"""A runtime that is busy, short of descriptors, or at fault: cells end in time all the same."""

from __future__ import annotations

import asyncio
import fcntl
import os
import re
import resource
import signal
import subprocess
import threading
import time

import psutil
import pytest

from mle_ideator.errors import SandboxError
from mle_ideator.protocols import SandboxLimits
from mle_ideator.sandboxes import launching, notes, processes, warm
from mle_ideator.sandboxes.environment import environment
from mle_ideator.sandboxes.inputs import CopiedInputs
from mle_ideator.sandboxes.keeping import Keeper
from mle_ideator.sandboxes.limits.watching import Watch
from mle_ideator.sandboxes.local import LocalSandbox
from mle_ideator.sandboxes.threads import at_once, in_thread
from mle_ideator.types import Execute

LATE_S = 1.5
"""A cell that has waited for something else."""


def python(code: str) -> Execute:
    return Execute("python", code)


async def test_slow_work_does_not_hold_up_a_cell(make_request):
    async with LocalSandbox(make_request()) as sandbox:
        release = threading.Event()
        slow = [asyncio.create_task(in_thread(release.wait)) for _ in range(200)]
        slow += [asyncio.create_task(asyncio.to_thread(release.wait)) for _ in range(100)]
        await asyncio.sleep(0.1)
        try:
            started = time.monotonic()
            assert (await sandbox.execute(python("print(1)"), 20)).text == "1\n"
            died = await sandbox.execute(python("import os; os._exit(3)"), 20)
            assert died.status == "died"
            assert time.monotonic() - started < 2 * LATE_S
        finally:
            release.set()
            await asyncio.gather(*slow)


async def test_threads_return_and_raise():
    assert await at_once(int, "12") == 12
    assert await in_thread(int, "c", base=16) == 12
    with pytest.raises(ZeroDivisionError):
        await at_once(lambda: 1 / 0)


async def test_putting_inputs_back_stops_no_other_sandbox(make_request, monkeypatch):
    async with LocalSandbox(make_request()) as sandbox:
        mend = CopiedInputs.mend
        monkeypatch.setattr(CopiedInputs, "mend", lambda own: time.sleep(0.5) or mend(own))
        cell = asyncio.create_task(sandbox.execute(python("1"), 20))
        longest = 0.0
        while not cell.done():
            started = time.monotonic()
            await asyncio.sleep(0.01)
            longest = max(longest, time.monotonic() - started)
        assert cell.result().status == "ok"
        assert longest < 0.4


async def test_a_last_look_that_takes_long_is_not_waited_for(tmp_path, monkeypatch):
    watch = Watch(SandboxLimits(), root_pid=lambda: 0, group=None, folders=(tmp_path,))
    await watch.settle()
    slow = threading.Event()
    monkeypatch.setattr("mle_ideator.sandboxes.limits.watching.measure", lambda *_: slow.wait(5))
    started = time.monotonic()
    await watch.settle()
    await watch.settle()
    assert time.monotonic() - started < LATE_S
    watch._settling.cancel()
    slow.set()


async def test_a_folder_that_can_not_be_removed_soon_holds_up_no_cell(make_request, monkeypatch):
    async with LocalSandbox(make_request()) as sandbox:
        release = threading.Event()
        monkeypatch.setattr("mle_ideator.sandboxes.running.remove_tree", lambda _: release.wait(20))
        started = time.monotonic()
        assert (await sandbox.execute(python("import os; os._exit(1)"), 20)).status == "died"
        assert (await sandbox.execute(python("print(2)"), 20)).text == "2\n"
        assert time.monotonic() - started < 2 * LATE_S
        release.set()


async def test_a_watch_that_fails_is_told_and_goes_on(make_request, monkeypatch, caplog):
    limits = SandboxLimits(disk_gib=1 / 64)
    async with LocalSandbox(make_request(limits=limits)) as sandbox:
        with monkeypatch.context() as fault:
            fault.setattr("mle_ideator.sandboxes.limits.watching.measure", lambda *_: 1 / 0)
            await sandbox.execute(python("import time; time.sleep(1)"), 20)
        assert "a watch ended by a fault" in caplog.text
        write = "import time\nopen('big', 'wb').write(bytes(2**26)); time.sleep(20)"
        execution = await sandbox.execute(python(write), 30)
        assert execution.limits_hit == ("disk",)


# ---------------------------------------------------------------------------- processes by number


def test_the_end_of_a_process_is_seen_beyond_descriptor_1024():
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < 2048:
        pytest.skip("so many descriptors are not to be had")
    process = subprocess.Popen(["sleep", "60"])
    opened = os.pidfd_open(process.pid)
    high = fcntl.fcntl(opened, fcntl.F_DUPFD_CLOEXEC, 1500)
    try:
        assert not launching.has_ended(high)
        process.kill()
        assert launching.has_ended(high, wait=True)
    finally:
        process.kill()
        process.wait()
        os.close(high)
        os.close(opened)


def test_only_what_is_still_the_same_is_killed():
    process = subprocess.Popen(["sleep", "60"])
    try:
        assert processes.is_below(process.pid, os.getpid())
        assert not processes.is_below(os.getppid(), os.getpid())
        assert not processes.is_below(process.pid, 0)
        processes.kill([process.pid], signal.SIGKILL, still=lambda _: False)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.1)
        processes.kill([process.pid, 2**22 - 1], signal.SIGKILL, still=lambda _: True)
        assert process.wait(5) == -signal.SIGKILL
    finally:
        process.kill()
        process.wait()


async def test_an_end_that_comes_twice_closes_nothing_of_others():
    child = subprocess.Popen(["sleep", "0.3"])  # noqa: ASYNC220
    launched = warm.ForkedProcess(None)
    launched._mark = "0" * 32
    launched._exit = os.pidfd_open(child.pid)
    reading, launched._lifeline = os.pipe()
    first = asyncio.create_task(launched.end())
    await asyncio.sleep(0.05)
    others = os.pipe()  # one has the number of the lifeline
    os.set_blocking(others[0], False)
    launched.send(b"x")
    await asyncio.gather(first, launched.end())
    with pytest.raises(BlockingIOError):
        os.read(others[0], 1)
    for descriptor in (reading, *others):
        os.close(descriptor)
    child.wait()


def descriptors():
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


def test_a_fork_server_that_can_not_start_leaves_no_descriptor(monkeypatch):
    nobody = environment(home="", temporary="", commands="", threads=1, mark="")
    before = descriptors()
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: os.open("/nowhere", 0))
    with pytest.raises(FileNotFoundError):
        warm.ForkServer(nobody, ())
    assert descriptors() == before


def fork_twice(server, whole=False):
    """Seconds until each is there. They end at once, as they are told nothing of use."""
    asked, seconds = time.monotonic(), []
    for _ in range(2):
        spec = {"mark": "MARK", "environment": {}}
        _, process = server.fork(spec, [0, 1, 2], whole=whole)
        os.close(process)
        seconds.append(time.monotonic() - asked)
    return seconds


@pytest.mark.parametrize("late", [True, False], ids=["late", "at once"])
@pytest.mark.parametrize(
    ("module", "why"),
    [
        (
            "import os; os.write(2, b'good bye'); os._exit(3)",
            "a module ended the process that imported it; it wrote: good bye",
        ),
        (
            "import threading, time; threading.Thread(target=time.sleep, args=(60,)).start()",
            "a module has started threads, which a fork does not have",
        ),
        (
            "import os; os.write(3, b'hello')",
            "a module has written to what it is heard by",
        ),
    ],
    ids=["ends", "threads", "writes"],
)
def test_a_fork_server_that_can_not_fork_says_why_and_leaves_nothing(tmp_path, module, why, late):
    (tmp_path / "awkward.py").write_text(module)
    given = environment(home="", temporary="", commands="", threads=1, mark="")
    before = descriptors()
    server = warm.ForkServer({**given, "PYTHONPATH": str(tmp_path)}, ("awkward", "json"))
    if late:
        time.sleep(3)
    with pytest.raises(SandboxError, match=f"^there is no fork: {re.escape(why)}$"):
        fork_twice(server)  # the first who asks may be served before the imports
    assert not server.alive
    assert descriptors() == before


@pytest.mark.parametrize("whole", [False, True])
def test_only_the_first_does_not_wait_for_all_imports(tmp_path, whole):
    (tmp_path / "long_one.py").write_text("import time; time.sleep(2)")
    given = environment(home="", temporary="", commands="", threads=1, mark="")
    modules = ("json", "long_one")
    server = warm.ForkServer({**given, "PYTHONPATH": str(tmp_path)}, modules)
    try:
        first, second = fork_twice(server, whole)
    finally:
        server.close()
    assert (first if whole else second - first) >= 2


# ------------------------------------------------------------------------------------------ jobs


async def test_many_ended_jobs_are_counted():
    keeper = Keeper(launching.HostProcess(), reader=None)
    for number in range(1, 1001):
        keeper._take("job", [number, 0])
    assert len(keeper._ended_jobs) < 50
    lines = notes.jobs_ended(*keeper.ended_jobs())
    assert lines[-1] == "and 995 more jobs ended"
    assert notes.jobs_ended(*keeper.ended_jobs()) == []


def fork_servers():
    found = psutil.Process().children()
    return [process for process in found if "fork_server" in process.cmdline()]


def spares(server):
    below = server.children(recursive=True)
    return [process for process in below if os.getsid(process.pid) == server.pid]


async def answer_of(request):
    async with LocalSandbox(request) as sandbox:
        return (await sandbox.execute(python("print(6 * 7)"), 30)).text


async def test_a_spare_that_is_killed_is_replaced_and_goes_with_its_fork_server(make_request):
    before = set(fork_servers())
    request = make_request(preload=("json",))  # a fork server of its own
    assert await answer_of(request) == "42\n"
    (server,) = set(fork_servers()) - before
    await asyncio.sleep(0.5)  # a new spare takes its time
    for process in spares(server):
        process.kill()
    assert await answer_of(make_request(preload=("json",))) == "42\n"
    await asyncio.sleep(0.5)
    left = spares(server)
    assert len(left) == 2  # a supervisor to be, and its keeper to be
    server.kill()
    assert await answer_of(make_request(preload=("json",))) == "42\n"
    _, alive = psutil.wait_procs(left, timeout=10)
    assert not alive
