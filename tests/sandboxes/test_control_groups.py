"""Control groups: real ones of v1 where this machine has them, v2's logic on a tree of files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mle_ideator.protocols import SandboxLimits
from mle_ideator.sandboxes.limits import group_places
from mle_ideator.sandboxes.limits.control_groups import ControlGroup, remove_leftovers, why_not
from mle_ideator.sandboxes.limits.group_reader import GroupReader
from mle_ideator.sandboxes.limits.hierarchies import groups_of

LIMITS = SandboxLimits(memory_gib=0.125, processes=40)
FORK_BOMB = "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass"

real = pytest.mark.skipif(bool(why_not()), reason=why_not() or "control groups can be made")


@pytest.fixture
def make():
    """Makes real groups; the test fails if one is left."""
    made = []

    def create(limits=LIMITS):
        group = ControlGroup.create(limits)
        made.append(group)
        return group

    yield create
    for group in made:
        group.kill()
        group.remove()
        assert [path for path in group.procs if path.parent.exists()] == []


def start(group, code, **options):
    """Python that joins before it is anything else."""

    def join():
        for file in group.procs:
            file.write_text("0")

    return subprocess.Popen([sys.executable, "-c", code], preexec_fn=join, **options)


def within(seconds, condition):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


# ----------------------------------------------------------------------------- real ones


@real
def test_what_takes_too_much_memory_is_killed_and_counted(make):
    group = make()
    with start(group, "x = bytearray(2**29)") as process:
        assert process.wait(20) == -signal.SIGKILL
    assert group.counts().killed_for_memory == 1
    with start(group, "x = bytearray(2**25); print(1)") as process:
        assert process.wait(20) == 0
    assert group.counts().killed_for_memory == 1


@real
def test_memory_is_held_for_all_processes_together(make):
    group = make()
    code = "import os, time\nfor _ in range(5): os.fork()\nx = bytearray(2**24); time.sleep(9)"
    with start(group, code):
        assert within(20, lambda: group.counts().killed_for_memory > 0)
        assert group.usage().memory_bytes <= 2**27
        group.kill()


@real
def test_a_fork_bomb_is_refused_counted_and_killed_at_once(make):
    group = make()
    with start(group, FORK_BOMB):
        assert within(20, lambda: group.counts().forks_refused > 100)
        assert group.usage().processes <= 40
        started = time.monotonic()
        group.kill()
        assert time.monotonic() - started < 2
        assert all(file.read_text() == "" for file in group.procs)
    assert within(20, lambda: group.usage().processes == 0)  # zombies count, and are not ours
    with start(group, "import os; os.fork()") as process:  # the group can be used on
        assert process.wait(20) == 0


@real
def test_it_kills_without_cgroup_kill_too(make):
    group = make()
    v1 = ControlGroup([g for g in group._groups if g.version == 1] or pytest.skip("v1 only"))
    v1._processes = group._processes
    with start(group, FORK_BOMB):
        assert within(20, lambda: v1.counts().forks_refused > 100)
        before = v1.counts()
        v1.kill()
        assert all(file.read_text() == "" for file in group.procs)
    assert v1.counts().forks_refused - before.forks_refused < 1000  # not those of the killing
    assert within(20, lambda: group.usage().processes == 0)
    with start(group, "import os; os.fork()") as process:
        assert process.wait(20) == 0


@real
def test_processor_time_is_counted_and_rationed(make):
    assert not make().holds_cpus
    group = make(SandboxLimits(memory_gib=0.125, cpus=0.2))
    assert group.holds_cpus
    with start(group, "while True: pass"):
        assert within(20, lambda: group.usage().cpu_s > 0.1)
        before, started = group.usage().cpu_s, time.monotonic()
        time.sleep(1)
        share = (group.usage().cpu_s - before) / (time.monotonic() - started)
        assert 0.02 < share < 0.35
        group.kill()
    assert group._quota_file.read_text().split()[0] == "20000"


@real
def test_many_processes_that_share_little_time_still_end_at_once(make):
    group = make(SandboxLimits(memory_gib=0.5, processes=200, cpus=0.02))
    code = "import os\nfor _ in range(6): os.fork()\nwhile True: pass"
    with start(group, code):
        time.sleep(1)
        started = time.monotonic()
        group.kill()
        assert time.monotonic() - started < 2


@real
def test_the_group_of_a_process_is_found(make):
    group = make()
    with start(group, "import time; x = bytearray(2**25); time.sleep(60)") as process:
        reader = GroupReader(groups_of(process.pid))
        assert within(20, lambda: reader.usage().memory_bytes > 2**25)
        assert reader.usage().processes == 1
        assert reader.usage().cpu_s > 0
        assert reader.counts() == group.counts()
        group.kill()
    assert GroupReader(groups_of(process.pid)).usage().memory_bytes == 0  # it has ended


@real
def test_what_is_gone_is_read_as_nothing(make):
    group = make()
    group.remove()
    group.remove()
    group.kill()
    assert (group.usage().memory_bytes, group.usage().processes) == (0, 0)
    assert group.counts().killed_for_memory == 0


OWNER = """
import subprocess, sys, time
from mle_ideator.sandboxes.limits.control_groups import ControlGroup
from tests.sandboxes.test_control_groups import LIMITS, start
group = ControlGroup.create(LIMITS)
agent = start(group, "import time; time.sleep(600)", stdout=subprocess.DEVNULL)
print(agent.pid, *group.procs, flush=True)
time.sleep(600)
"""


@real
def test_what_a_killed_runtime_left_is_removed_and_nothing_else(make):
    kept = make()
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", OWNER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as owner:
        pid, *files = owner.stdout.readline().split()
        remove_leftovers()
        assert all(Path(file).exists() for file in files)
        owner.kill()
    remove_leftovers()
    assert not any(Path(file).parent.exists() for file in files)
    assert all(file.exists() for file in kept.procs)
    assert within(5, lambda: not Path(f"/proc/{pid}/cmdline").exists() or _is_zombie(pid))


def _is_zombie(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


# ---------------------------------------------------------------- v2, on a tree of files


class Tree:
    """A cgroup v2 file system as files, and a /proc that says where this process is in it."""

    def __init__(self, folder: Path, own: str) -> None:
        self.top, self.proc = folder / "cgroup", folder / "proc"
        self.own = self.group(own)
        (self.proc / "self").mkdir(parents=True)
        mount = f"31 23 0:28 / {self.top} rw,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
        (self.proc / "self" / "mountinfo").write_text(f"23 1 8:1 / / rw - ext4 /dev/a rw\n{mount}")
        (self.proc / "self" / "cgroup").write_text(f"0::/{own}\n")

    def group(self, path, given="cpuset cpu io memory pids", handed="", procs=""):
        folder = self.top / path
        folder.mkdir(parents=True, exist_ok=True)
        files = {"controllers": given, "subtree_control": handed, "procs": procs}
        for name, text in files.items():
            (folder / f"cgroup.{name}").write_text(text)
        if path:
            (folder / "cgroup.type").write_text("domain\n")
        return folder

    def create(self, limits=LIMITS):
        return ControlGroup.create(limits, proc=self.proc)


@pytest.fixture
def tree(tmp_path):
    """As systemd makes it for a terminal: the runtime's own group holds processes."""
    found = Tree(tmp_path, "user.slice/user@7.service/app.slice/term.scope")
    found.group("user.slice/user@7.service/app.slice/term.scope", procs="12\n34\n")
    found.group("user.slice/user@7.service/app.slice", handed="memory pids")
    return found


def test_v2_lies_beside_the_runtimes_own_group(tree):
    group = tree.create(SandboxLimits(memory_gib=1, processes=9, cpus=1.5))
    (file,) = group.procs
    folder = file.parent
    assert folder.parent == tree.own.parent
    values = {
        "memory.max": str(2**30),
        "memory.swap.max": "0",
        "pids.max": "9",
        "cpu.max": "150000 100000",
    }
    assert {name: (folder / name).read_text() for name in values} == values
    assert not (folder / "memory.oom.group").exists()  # one process dies, not the kernel with it
    assert (tree.own.parent / "cgroup.subtree_control").read_text() == "+cpu"


def test_v2_controllers_are_asked_for_where_nothing_runs(tree):
    between = tree.group("user.slice/user@7.service/app.slice")
    control = between / "cgroup.subtree_control"
    remove_leftovers(proc=tree.proc)
    assert control.read_text() == ""
    group = tree.create()
    assert group.procs[0].parent.parent == between
    assert control.read_text() == "+memory +pids"


def test_v2_a_group_that_holds_processes_is_passed_over(tree):
    tree.group("user.slice/user@7.service/app.slice", procs="56\n")
    above = tree.group("user.slice/user@7.service", handed="cpu memory pids")
    assert tree.create().procs[0].parent.parent == above


def test_v2_where_nothing_hands_down_there_is_none_and_the_reason(tree):
    tree.group("user.slice/user@7.service/app.slice", given="cpu pids")
    assert tree.create() is None
    assert "memory and pids" in why_not(tree.proc)
    assert "\n" not in why_not(tree.proc)


def test_v2_the_top_may_hold_processes(tmp_path):
    tree = Tree(tmp_path, "")
    tree.group("", procs="1\n2\n")
    assert tree.create().procs[0].parent.parent == tree.top


def test_v2_the_runtimes_own_bound_is_not_got_around(tree):
    (tree.own / "memory.max").write_text(f"{2**20}\n")
    group = tree.create()
    assert (group.procs[0].parent / "memory.max").read_text() == str(2**20)


def test_v2_is_read(tree):
    folder = tree.create().procs[0].parent
    (folder / "memory.current").write_text("5000000\n")
    (folder / "memory.stat").write_text("anon 3000000\nfile 2000000\ninactive_file 1500000\n")
    (folder / "memory.events").write_text("low 0\nhigh 0\nmax 71\noom 2\noom_kill 3\n")
    (folder / "pids.current").write_text("7\n")
    (folder / "pids.events").write_text("max 11\n")
    (folder / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 2000000\n")
    (tree.proc / "77").mkdir()
    (tree.proc / "77" / "cgroup").write_text(f"0::/{folder.relative_to(tree.top)}\n")
    reader = GroupReader(groups_of(77, tree.proc))
    usage, counts = reader.usage(), reader.counts()
    assert (usage.memory_bytes, usage.cpu_s, usage.processes) == (3_500_000, 2.5, 7)
    assert (counts.killed_for_memory, counts.forks_refused) == (3, 11)


def test_v2_is_killed_by_its_own_file(tree):
    group = tree.create(SandboxLimits(memory_gib=1, cpus=0.5))
    folder = group.procs[0].parent
    group.procs[0].write_text("")
    group.kill()
    assert (folder / "cgroup.kill").read_text() == "1"
    assert (folder / "cpu.max").read_text() == "50000 100000"


def test_v2_a_refusal_is_told(tree):
    control = tree.group("user.slice/user@7.service/app.slice") / "cgroup.subtree_control"
    control.unlink()
    control.mkdir()  # writing fails, as where a group above does not hand down
    assert tree.create() is None
    assert "refused to make a control group" in why_not(tree.proc)


def test_a_user_without_rights_is_told_what_to_do(tree, monkeypatch):
    monkeypatch.setattr(group_places, "_may_write", lambda path: False)
    assert tree.create() is None
    assert "systemd-run --user --scope" in why_not(tree.proc)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody without rights")
def test_a_user_without_rights_gets_none():
    code = (
        "import os, mle_ideator.sandboxes.limits.control_groups as c, mle_ideator.protocols as p\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "print(c.ControlGroup.create(p.SandboxLimits())); print(c.why_not())"
    )
    command = [sys.executable, "-c", code]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    none, why = said.splitlines()
    assert none == "None"
    assert "may" in why


def test_without_any_there_is_none(tmp_path):
    tree = Tree(tmp_path, "a")
    (tree.proc / "self" / "mountinfo").write_text("23 1 8:1 / / rw - ext4 /dev/a rw\n")
    assert tree.create() is None
    assert why_not(tree.proc) == "no control groups with memory and pids are mounted"


@pytest.mark.parametrize(
    ("mount", "line", "place"),
    [
        ("/ {}/memory rw - cgroup cgroup rw,memory", "4:memory:/a/b", "memory/a/b"),
        ("/ {}/c rw - cgroup cgroup rw,cpu,cpuacct", "4:cpuacct,cpu:/a", "c/a"),
        ("/box {}/memory rw - cgroup cgroup rw,memory", "4:memory:/box/b", "memory/b"),
        ("/box {}/memory rw - cgroup cgroup rw,memory", "4:memory:/other", None),
        ("/ {}/memory rw - cgroup cgroup rw,memory", "4:memory:/../a", None),
        ("/ {}/with\\040space rw - cgroup2 cgroup2 rw", "0::/a", "with space/a"),
        ("/ {}/freezer rw - cgroup cgroup rw,freezer", "4:freezer:/a", None),
        ("/ {}/unified rw - cgroup2 cgroup2 rw", "4:freezer:/a", None),
    ],
)
def test_groups_are_found_where_they_are_mounted(tmp_path, mount, line, place):
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "mountinfo").write_text(f"31 23 0:28 {mount.format('/sys')}\n")
    (tmp_path / "self" / "cgroup").write_text(f"{line}\n")
    found = [str(group.folder) for group in groups_of(proc=tmp_path)]
    assert found == ([f"/sys/{place}"] if place else [])
