"""The watcher, on real processes and files, without a control group where not said."""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import sys
import time
from contextlib import asynccontextmanager, suppress

import pytest

from mle_ideator.errors import UsageError
from mle_ideator.protocols import SandboxLimits
from mle_ideator.sandboxes import facts
from mle_ideator.sandboxes.environment import environment
from mle_ideator.sandboxes.limits import disk
from mle_ideator.sandboxes.limits import watching as watching_module
from mle_ideator.sandboxes.limits.control_groups import ControlGroup, why_not
from mle_ideator.sandboxes.limits.disk import DiskBound, Places, Taken, measure
from mle_ideator.sandboxes.limits.gpus import visible_gpus
from mle_ideator.sandboxes.limits.rlimits import rlimits
from mle_ideator.sandboxes.limits.usage import HeldFiles, held_files, tree_usage
from mle_ideator.sandboxes.limits.watching import Watch
from mle_ideator.sandboxes.processes import descendants

MIB = 2**20
SUPERVISOR = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # orphans come here
if (agent := os.fork()) == 0:
    exec(sys.argv[1])
    os._exit(0)
while True:
    try: os.wait()
    except ChildProcessError: break
sys.stdin.read()
"""


@pytest.fixture
def start():
    """Runs code below a process that reaps and stays; kills all at the end."""
    started = []

    def run(code, **options):
        process = subprocess.Popen(
            [sys.executable, "-c", SUPERVISOR, code], stdin=subprocess.PIPE, **options
        )
        started.append(process)
        return process

    yield run
    for process in started:
        for _ in range(100):
            found = subprocess.run(
                ["pgrep", "-P", str(process.pid)], capture_output=True, text=True
            ).stdout.split()
            for pid in found:
                with suppress(ProcessLookupError):
                    os.kill(int(pid), 9)
            if not found:
                break
        process.kill()
        process.communicate()


@asynccontextmanager
async def watching(limits, process=None, **options):
    watch = Watch(
        limits,
        root_pid=lambda: process.pid if process else 0,
        **({"group": None, "folders": ()} | options),
    )
    task = asyncio.create_task(watch.run())
    watch.begin()
    try:
        yield watch
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled()


async def breach(watch, seconds=20):
    return await asyncio.wait_for(asyncio.shield(watch.breached), seconds)


async def until(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)


async def stays_quiet(watch, seconds=0.8):
    await asyncio.wait({watch.breached}, timeout=seconds)
    assert not watch.breached.done()


# ------------------------------------------------------------------------------ processes


async def test_too_much_memory_stops_it(start):
    process = start("x = [bytearray(2**20) for _ in range(200)]; import time; time.sleep(60)")
    async with watching(SandboxLimits(memory_gib=0.125), process) as watch:
        found = await breach(watch)
    assert found.limit == "memory"
    assert "the limit is 0.125 GiB for all together" in found.words


async def test_memory_is_held_for_all_processes_together(start):
    code = "os.fork(); os.fork(); x = bytearray(b'x' * 2**26); import time; time.sleep(60)"
    async with watching(SandboxLimits(memory_gib=0.2), start(code)) as watch:
        assert (await breach(watch)).limit == "memory"


async def test_shared_memory_of_forks_counts_once(start):
    code = "x = bytearray(b'x' * 2**26)\nfor _ in range(4): os.fork()\nimport time; time.sleep(60)"
    process = start(code)
    async with watching(SandboxLimits(memory_gib=0.25), process) as watch:
        await until(lambda: len(descendants(process.pid)) == 16)
        await stays_quiet(watch, 1.5)
        assert tree_usage(process.pid, 2**50).memory_bytes > 2**30  # many times the same
        assert 2**26 < tree_usage(process.pid, 0).memory_bytes < 2**28


async def test_trusted_processes_hold_no_memory(start):
    process = start("x = bytearray(b'x' * 2**27); import time; time.sleep(60)")
    await until(lambda: tree_usage(process.pid, 0).memory_bytes > 2**27)
    assert tree_usage(process.pid, 0, descendants(process.pid)).memory_bytes == 0


@pytest.mark.parametrize(
    "code",
    [
        "[os.fork() for _ in range(6)]; import time; time.sleep(60)",
        "import threading, time\n"
        "for _ in range(30): threading.Thread(target=time.sleep, args=(60,)).start()\n"
        "time.sleep(60)",
    ],
    ids=["processes", "threads"],
)
async def test_too_many_processes_stop_it(start, code):
    async with watching(SandboxLimits(processes=20), start(code)) as watch:
        found = await breach(watch)
    assert found.limit == "processes"
    assert "the limit is 20" in found.words


@pytest.mark.skipif(bool(why_not()), reason=why_not() or "control groups can be made")
async def test_a_fork_bomb_that_no_group_holds_is_seen(start):
    """A group keeps it from this machine here; the watcher does not know of it."""
    group = ControlGroup.create(SandboxLimits(processes=300))

    def join():
        for file in group.procs:
            file.write_text("0")

    bomb = "while True:\n  try: os.fork()\n  except OSError: pass"
    try:
        async with watching(SandboxLimits(processes=100), start(bomb, preexec_fn=join)) as watch:
            assert (await breach(watch)).limit == "processes"
    finally:
        group.kill()
        group.remove()


async def test_processor_time_of_ended_processes_counts(start):
    code = """
import time
def burn():
    end = time.process_time() + 0.2
    while time.process_time() < end: pass
    os._exit(0)
for _ in range(5):
    if os.fork() == 0:
        if os.fork() == 0: burn()
        os._exit(0)
    os.wait()
    time.sleep(0.3)
time.sleep(60)
"""
    async with watching(SandboxLimits(cpu_s=0.7), start(code)) as watch:
        found = await breach(watch, 30)
        assert found.limit == "cpu_time"
        assert "processor time" in found.words
        watch.begin()
        assert not watch.breached.done()
        assert (await breach(watch)).limit == "cpu_time"  # it does not come back


async def test_processor_time_counts_on_when_all_is_started_anew(start):
    spent = {}
    burn = "import time\nwhile time.process_time() < 0.6: pass\ntime.sleep(60)"
    async with watching(SandboxLimits(), start(burn), cpu_s=spent):
        await until(lambda: sum(spent.values()) >= 0.5)
    async with watching(SandboxLimits(cpu_s=0.5), start("import time; time.sleep(60)")) as watch:
        await asyncio.sleep(0.5)
        assert not watch.breached.done()  # by itself it has used next to nothing
    async with watching(
        SandboxLimits(cpu_s=0.5), start("import time; time.sleep(60)"), cpu_s=spent
    ) as watch:
        assert (await breach(watch)).limit == "cpu_time"


@pytest.mark.skipif(bool(why_not()), reason=why_not() or "control groups can be made")
async def test_a_control_group_tells_what_it_did_and_the_cell_goes_on(start):
    limits = SandboxLimits(memory_gib=0.125, processes=12, cpu_s=1.0)
    group = ControlGroup.create(limits)

    def join():
        for file in group.procs:
            file.write_text("0")

    code = """
if os.fork() == 0: x = bytearray(2**29)
os.wait()
for _ in range(20):
    try:
        if os.fork() == 0:
            import time; time.sleep(60)
    except OSError: pass
sys.stdout.write("done\\n"); sys.stdout.flush()
while True: pass
"""
    try:
        process = start(code, preexec_fn=join, stdout=subprocess.PIPE)
        async with watching(limits, process, group=group) as watch:
            assert await asyncio.to_thread(process.stdout.readline) == b"done\n"
            (memory, said), (processes, refused) = watch.hits()
            assert (memory, processes) == ("memory", "processes")
            assert "a process was killed: the limit is 0.125 GiB" in said
            assert "refused" in refused
            assert "the limit is 12" in refused
            assert watch.hits() == ()
            assert (await breach(watch)).limit == "cpu_time"
        group.kill()
    finally:
        group.kill()
        process.kill()
        process.wait()
        group.remove()


# ----------------------------------------------------------------------------------- disk


def small(**limits):
    return SandboxLimits(**({"disk_gib": 16 / 1024, "file_gib": 8 / 1024} | limits))


async def test_a_full_workspace_stops_it(tmp_path):
    async with watching(small(), folders=[tmp_path]) as watch:
        await watch.settle()
        for number in range(5):
            (tmp_path / f"{number}").write_bytes(bytes(4 * MIB))
        found = await breach(watch)
    assert found.limit == "disk"
    assert "the limit is 0.0156 GiB" in found.words


async def test_what_is_over_the_bound_can_be_deleted_but_not_grow(tmp_path):
    async def quiet(watch):
        await watch._walk()
        assert not watch.breached.done()

    (tmp_path / "old").write_bytes(bytes(24 * MIB))
    async with watching(small(), folders=[tmp_path]) as watch:
        await quiet(watch)
        (tmp_path / "log").write_text("deleting")
        await quiet(watch)
        os.truncate(tmp_path / "old", 20 * MIB)
        await quiet(watch)
        (tmp_path / "new").write_bytes(bytes(MIB))
        assert (await breach(watch)).limit == "disk"
        watch.begin()
        await quiet(watch)
        (tmp_path / "old").unlink()
        await quiet(watch)
        (tmp_path / "new").write_bytes(bytes(20 * MIB))
        assert (await breach(watch)).limit == "disk"


async def test_a_file_that_reached_its_bound_is_told_once(tmp_path):
    async with watching(small(), folders=[tmp_path]) as watch:
        await watch.settle()
        assert watch.hits() == ()
        (tmp_path / "deep").mkdir()
        (tmp_path / "deep" / "model.bin").touch()
        os.truncate(tmp_path / "deep" / "model.bin", 8 * MIB)
        await watch.settle()
        ((limit, words),) = watch.hits()
        assert limit == "file_size"
        assert "deep/model.bin" in words
        await watch.settle()
        assert watch.hits() == ()
        with (tmp_path / "deep" / "model.bin").open("r+b") as file:
            file.write(b"again")
        await watch.settle()
        assert [limit for limit, _ in watch.hits()] == ["file_size"]


async def test_deleted_files_that_are_still_open_count(start, tmp_path):
    code = f"""
f = open({str(tmp_path / "x")!r}, 'wb'); os.unlink(f.name)
f.write(bytes({20 * MIB})); f.flush()
import time; time.sleep(60)
"""
    async with watching(small(), start(code), folders=[tmp_path]) as watch:
        assert (await breach(watch)).limit == "disk"


def walked(*folders, without=()):
    return measure(Places(folders, frozenset(map(str, without)), 8 * MIB), 0)


def test_hard_links_count_once_and_links_are_not_followed(tmp_path):
    box, outside = tmp_path / "box", tmp_path / "outside"
    box.mkdir()
    outside.mkdir()
    (outside / "big").write_bytes(bytes(4 * MIB))
    (box / "a").write_bytes(bytes(MIB))
    os.link(box / "a", box / "b")
    (box / "link").symlink_to(outside)
    (box / "file").symlink_to(outside / "big")
    (box / "self").symlink_to(".")
    assert MIB <= walked(box).used < 1.1 * MIB
    assert walked(box).complete
    replaced = tmp_path / "replaced"
    replaced.symlink_to(outside)
    assert walked(replaced).used == 0
    assert not walked(replaced).complete
    assert walked(tmp_path / "gone").complete


def test_inputs_are_left_out(tmp_path):
    (tmp_path / "input" / "more").mkdir(parents=True)
    (tmp_path / "input" / "more" / "x").write_bytes(bytes(MIB))
    assert walked(tmp_path).used > MIB
    assert walked(tmp_path, without=[tmp_path / "input"]).used < MIB


def test_holes_take_no_disk(tmp_path):
    (tmp_path / "x").touch()
    os.truncate(tmp_path / "x", 2**40)
    assert walked(tmp_path).used < MIB


def test_a_path_too_long_to_look_into_is_known(tmp_path):
    here = os.open(tmp_path, os.O_PATH)
    for _ in range(40):
        os.mkdir("d" * 200, dir_fd=here)
        inner = os.open("d" * 200, os.O_PATH, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    assert not walked(tmp_path).complete
    subprocess.run(["rm", "-rf", str(tmp_path)], check=True)


async def test_held_files_of_others_are_told_apart(start, tmp_path):
    code = f"f = open({str(tmp_path / 'x')!r}, 'wb'); f.write(bytes({MIB})); os.unlink(f.name); "
    process = start(code + "f.flush(); g = open('/proc/self/stat'); import time; time.sleep(60)")
    device = {tmp_path.stat().st_dev}
    await until(lambda: held_files(process.pid, device).bytes >= MIB)
    assert MIB <= held_files(process.pid, device).bytes < 2 * MIB
    assert held_files(process.pid, {-1}) == HeldFiles(0, True)


def taken(used, free, clear=True):
    return Taken(used * MIB, HeldFiles(0, clear), (), True, free * MIB, reserve=500 * MIB)


def test_a_nearly_full_disk_stops_only_who_fills_it():
    bound = DiskBound(1000 * MIB)
    assert bound.judge(taken(100, 5000)) is None
    assert bound.judge(taken(105, 400)) is None  # others fill it
    assert "nearly full (0.391 GiB left)" in bound.judge(taken(300, 400))
    bound.begin()
    assert bound.judge(taken(300, 400)) is None
    assert bound.judge(taken(200, 450)) is None


def test_space_that_went_where_nothing_can_be_seen_counts():
    bound = DiskBound(1000 * MIB)
    for clear in (True, False):
        bound.judge(taken(100, 5000))
        bound.begin()
        why = bound.judge(taken(300, 3700, clear))
        assert (why is None) is clear
    assert "can not be seen" in why
    bound.begin()
    assert bound.judge(taken(400, 3700, clear=False)) is None


async def test_watching_many_files_takes_little_time(tmp_path):
    for folder in range(100):
        (tmp_path / f"{folder}").mkdir()
        for file in range(100):
            (tmp_path / f"{folder}" / f"{file}").touch()
    async with watching(SandboxLimits(), folders=[tmp_path]) as watch:
        await watch.settle()
        await asyncio.sleep(0.5)
        before = time.process_time()
        await asyncio.sleep(3)
        assert time.process_time() - before < 1


async def test_a_slow_walk_is_done_sooner_when_space_is_going(monkeypatch):
    watch = Watch(SandboxLimits(disk_gib=1), root_pid=lambda: 0, group=None, folders=[])
    watch._walked_s = 1.0
    free = 10 * 2**30
    for now, wanted in ((free, False), (free - 10 * MIB, False), (free - 100 * MIB, True)):
        monkeypatch.setattr(watching_module, "free_space", lambda _, now=now: (now, 2**29))
        assert watch._time_to_walk(9, free) is wanted
        assert not watch._time_to_walk(1, free)
        assert watch._time_to_walk(31, free)


async def test_what_a_cell_fills_is_told_however_late_the_first_look_is(tmp_path, monkeypatch):
    def late(*arguments):
        time.sleep(0.1)
        return disk.measure(*arguments)

    monkeypatch.setattr(watching_module, "measure", late)
    limits = SandboxLimits(file_gib=1 / 1024)
    (tmp_path / "before").write_bytes(bytes(MIB))
    async with watching(limits, folders=[tmp_path]) as watch:
        await watch.ready()
        (tmp_path / "new").write_bytes(bytes(MIB))
        told = []
        await until(lambda: told.extend(watch.hits()) or told)
    ((limit, words),) = told
    assert limit == "file_size"
    assert "new" in words
    assert "before" not in words


async def test_free_space_of_nothing_is_enough(tmp_path):
    assert disk.free_space([tmp_path / "gone"])[0] > 2**60
    assert disk.free_space([tmp_path])[1] <= 2**29


# --------------------------------------------------------------------- plain numbers, GPUs


def test_bounds_of_each_process():
    limits = SandboxLimits(memory_gib=0.5, file_gib=0.25, cpu_s=1.5, processes=50)
    grouped = rlimits(limits, grouped=True)
    assert grouped == {"RLIMIT_CORE": 0, "RLIMIT_FSIZE": 2**28, "RLIMIT_CPU": 12}
    alone = rlimits(limits, grouped=False)
    assert alone["RLIMIT_DATA"] == 2**29
    assert ("RLIMIT_NPROC" in alone) is (os.geteuid() != 0)
    assert all(hasattr(resource, name) for name in alone)

    def bind():
        for name, value in alone.items():
            resource.setrlimit(getattr(resource, name), (value, value))

    command = [sys.executable, "-c", "import os\nx = bytearray(2**29)"]
    done = subprocess.run(command, preexec_fn=bind, capture_output=True, text=True)
    assert "MemoryError" in done.stderr


def test_memory_without_a_bound_is_three_quarters_of_the_machine():
    assert facts.bound_bytes(SandboxLimits()) == int(0.75 * facts.memory_bytes())


@pytest.mark.parametrize(
    ("wanted", "visible"),
    [
        *((None, None), ("all", None), ("", ""), (" ", ""), ("0", "0"), ("1, 0", "1,0")),
        *(("0,", "0"), ("GPU-8932f937-d72c", "GPU-8932f937-d72c"), ("MIG-1/2/3", "MIG-1/2/3")),
    ],
)
def test_gpus_by_assignment(monkeypatch, wanted, visible):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert visible_gpus(wanted) == visible
    assigned = environment(home="/", temporary="/", commands="/", threads=1, mark="", gpus=wanted)
    assert assigned.get("CUDA_VISIBLE_DEVICES") == visible


@pytest.mark.parametrize("wanted", ["-1", "first", "0;1", "0,0", "GPU-$(id)", "1.5", "ALL"])
def test_what_is_no_gpu_is_refused_in_one_line(monkeypatch, wanted):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    with pytest.raises(UsageError) as refused:
        visible_gpus(wanted)
    assert "\n" not in str(refused.value)


def test_gpus_of_others_are_not_given_away(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")
    assert visible_gpus("3") == "3"
    assert visible_gpus(None) is None
    with pytest.raises(UsageError, match="GPU 0 is not among those of this process"):
        visible_gpus("0")


def test_only_assigned_gpus_are_told(monkeypatch):
    listed = (("GPU-aa11", "A"), ("GPU-bb22", "B"), ("GPU-cc33", "C"))
    monkeypatch.setattr(facts, "_gpus_of_this_machine", lambda: listed)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert facts.gpus() == ("A", "B", "C")
    assert facts.gpus("") == ()
    assert facts.gpus("2,0") == ("C", "A")
    assert facts.gpus("GPU-bb22") == ("B",)
    assert facts.gpus("1,7,0") == ("B",)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert facts.gpus() == ("B",)


def test_libraries_are_told_their_share_of_the_cores():
    told = environment(home="/", temporary="/", commands="/", threads=3, mark="")
    names = ("OMP_NUM_THREADS", "POLARS_MAX_THREADS", "RAYON_NUM_THREADS", "NUMBA_NUM_THREADS")
    assert {told[name] for name in names} == {"3"}
