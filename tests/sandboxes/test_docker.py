"""The walls and limits of a container, and what becomes of containers and their files."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import pytest_asyncio

from mle_ideator.protocols import SandboxLimits
from mle_ideator.sandboxes import choose_sandbox, owners
from mle_ideator.sandboxes.containers.daemon import Daemon
from mle_ideator.sandboxes.containers.docker import DockerSandbox
from mle_ideator.types import Execute

REASON = DockerSandbox.unavailable()
pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(REASON is not None, reason=f"docker: {REASON}"),
]
PLANTED = f"the-answer-is-{secrets.token_hex(8)}"
LIMITS = SandboxLimits(memory_gib=0.5, processes=100)
OPTIONS = {"temporary_gib": 0.0625}


def output(*command: str, given: str = "") -> str:
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
    return done.stdout


def containers(what: str = "label=mle-ideator.owner") -> list[str]:
    return output("docker", "ps", "--all", "--quiet", "--filter", what).split()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sandbox(make_request):
    """One with small limits, for the whole module; `statsmodels` is masked in it."""
    import statsmodels

    masked = (str(Path(statsmodels.__file__).parent / "datasets"),)
    request = make_request(masked=masked, limits=LIMITS)
    (Path(request.inputs).parent / "answers.csv").write_text(PLANTED)
    async with choose_sandbox("docker", OPTIONS)[1](request) as opened:
        yield opened


@pytest.fixture
def run(sandbox):
    async def execute(code, language="python", timeout_s=60):
        return await sandbox.execute(Execute(language, code), timeout_s)

    return execute


# ---------------------------------------------------------------------------------- walls


async def test_there_is_no_network(run):
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = f"""
import socket
for address in (('127.0.0.1', {server.getsockname()[1]}), ('1.1.1.1', 53), ('172.17.0.1', 2375)):
    try:
        socket.create_connection(address, timeout=2); print('connected')
    except OSError as error:
        print(type(error).__name__)
print([name for _, name in socket.if_nameindex() if name != 'lo'])
"""
        text = (await run(code)).text
    assert "connected" not in text
    assert text.endswith("[]\n")


async def test_no_file_of_the_host_is_there(run, make_request):
    code = f"""
import os
needle, found = {PLANTED[::-1]!r}[::-1], []
for folder, folders, names in os.walk('/'):
    if folder == '/':
        folders[:] = [f for f in folders if f not in ('proc', 'sys', 'usr')]
    for name in names:
        path = os.path.join(folder, name)
        if 'answers' in name or name.endswith('docker.sock'):
            found.append(path)
        if os.path.isfile(path) and os.path.getsize(path) < 10_000:
            try:
                if needle in open(path, errors='replace').read(): found.append(path)
            except OSError:
                pass
print(found, os.listdir('/workspace/input'))
"""
    assert (await run(code)).text in ("[] ['more', 'train.csv']\n", "[] ['train.csv', 'more']\n")


async def test_only_the_private_places_can_be_written(run):
    code = """
import os
writable = set()
for folder, folders, _ in os.walk('/'):
    folders[:] = [f for f in folders if os.path.join(folder, f) not in ('/proc', '/sys')]
    try:
        name = os.path.join(folder, 'probe'); open(name, 'x').close(); os.unlink(name)
        writable.add('/' + '/'.join(folder.split('/')[1:3]))
    except OSError:
        pass
print(*sorted(writable - {'/run/kernel'}))
"""
    places = set((await run(code)).text.split())
    assert places == {"/workspace", "/tmp", "/home/agent", "/dev/shm", "/dev/mqueue"}


async def test_its_own_commands_can_be_run_but_not_changed(run):
    code = """
import os
for folder in ('/run/bin', '/run/programs'):
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        try:
            os.chmod(path, 0o777) if os.path.isdir(path) else open(path, 'a'); print(path)
        except OSError:
            pass
"""
    assert (await run(code)).text == ""
    said = (await run("command -v python python3 job; job start sleep 0; job wait 1", "bash")).text
    assert said.splitlines()[:3] == ["/run/bin/python", "/run/bin/python3", "/run/bin/job"]
    assert "with exit code 0" in said


@pytest.mark.parametrize(
    "code",
    [
        "os.open('/proc/sys/kernel/core_pattern', os.O_WRONLY)",
        "os.open('/proc/sysrq-trigger', os.O_WRONLY)",
        "open('/usr/planted', 'w')",
        "open('/etc/passwd', 'a')",
        "open('/workspace/input/train.csv', 'r+')",
        "os.unlink('/workspace/input/train.csv')",
        "os.rename('/workspace/input', '/workspace/moved')",
        "os.setuid(0)",
        "os.mknod('/tmp/sda', 0o60600, os.makedev(8, 0)); open('/tmp/sda')",
        "os.chroot('/')",
        "subprocess.run(['mount', '-o', 'remount,rw', '/usr'], check=True)",
        "subprocess.run(['umount', '/workspace/input'], check=True)",
        "subprocess.run(['unshare', '-Ur', 'true'], check=True)",
        "subprocess.run(['nsenter', '-t', '1', '-m', 'true'], check=True)",
        "open('/proc/1/environ').read()",
        "open('/run/supervisor/lifeline', 'w')",
        "open('/run/supervisor/reports', 'w')",
        "os.open('/proc/1/fd/1', os.O_WRONLY)",
        "os.chmod('/run/supervisor/reports', 0o600)",
        "os.remove('/run/supervisor/output')",
    ],
)
async def test_rights_are_not_there(run, code):
    assert (await run(f"import os, subprocess; {code}")).status == "error"


async def test_the_user_is_nobody_special(run):
    status = (
        "grep -E '^(Cap(Prm|Eff|Amb|Bnd)|NoNewPrivs|Seccomp:)' /proc/self/status; id -u; id -un"
    )
    words = (await run(status, "bash")).text.split()
    assert words[1:12:2] == ["0000000000000000"] * 4 + ["1", "2"]
    assert words[-2] != "0"
    assert words[-1] == "agent"


async def test_a_tasks_source_is_covered_in_the_image(run):
    code = """
import os, statsmodels
folder = os.path.dirname(statsmodels.__file__)
print(len(os.listdir(folder)) > 9, os.listdir(folder + '/datasets'))
"""
    assert (await run(code)).text == "True []\n"
    assert "ModuleNotFoundError" in (await run("import mle_ideator")).text


async def test_signals_to_the_first_process_do_nothing(run):
    for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGINT):
        assert (await run(f"import os; os.kill(1, {int(number)}); print(1)")).text == "1\n"


# --------------------------------------------------------------------------------- limits


async def test_a_kernel_that_runs_out_of_memory_is_told_so(run):
    execution = await run("x = bytearray(2**30)")
    assert execution.status == "died"
    assert "out of memory: the limit is 0.5 GiB" in execution.note
    assert (await run("print(1)")).text == "1\n"


async def test_a_process_that_runs_out_of_memory_is_told_too(run):
    execution = await run("python3 -c 'x = bytearray(2**30)'; echo $?", "bash")
    assert execution.text.endswith("\n137\n")
    assert "memory ran out, and a process was killed: the limit is 0.5 GiB" in execution.note
    assert "memory" not in (await run("print(1)")).note


async def test_files_in_memory_are_limited(run):
    code = """
for file in ('/tmp/x', '/home/agent/x'):
    try:
        open(file, 'wb').write(bytes(2**27))
    except OSError as error:
        print(error.strerror)
"""
    assert (await run(code)).text == "No space left on device\n" * 2
    await run("rm -f /tmp/x ~/x", "bash")


async def test_files_in_memory_count(make_request):
    request = make_request(limits=SandboxLimits(memory_gib=0.25), preload=())
    async with choose_sandbox("docker", {"temporary_gib": 1})[1](request) as small:
        fill = Execute("bash", "head -c 600M /dev/zero > /tmp/x; echo $?; sleep 1")
        execution = await small.execute(fill, 60)
        assert "memory" in execution.note
        assert "the limit is 0.25 GiB" in execution.note
        assert (await small.execute(Execute("bash", "rm -f /tmp/x; echo 1"), 60)).text == "1\n"


async def test_a_fork_bomb_is_contained(run):
    code = """
import os, time
made = 0
try:
    while True:
        if os.fork() == 0:
            time.sleep(60); os._exit(0)
        made += 1
except OSError as error:
    print(made < 100, type(error).__name__)
"""
    assert (await run(code)).text == "True BlockingIOError\n"
    bomb = "bomb() { bomb | bomb & }; bomb; sleep 30"
    assert (await run(bomb, "bash", timeout_s=2)).status in ("timeout", "died", "error")
    await run("import os; os._exit(1)")
    assert (await run("print(1)")).text == "1\n"


async def test_what_may_be_used_is_said(sandbox):
    info = sandbox.info
    assert (info.kind, info.memory_gib, info.network) == ("docker", 0.5, False)
    assert info.libraries["numpy"]
    assert info.python.startswith("3.")


async def test_processors_are_limited(make_request):
    request = make_request(limits=SandboxLimits(cpus=0.2), preload=())
    async with DockerSandbox(request) as slow:
        code = """
import time
end = time.time() + 1
while time.time() < end:
    pass
print(time.process_time())
"""
        before = await slow.execute(
            Execute("python", "import time; print(time.process_time())"), 30
        )
        execution = await slow.execute(Execute("python", code), 30)
    assert float(execution.text) - float(before.text) < 0.6


# ----------------------------------------------------------------------------- lifetimes

RUNTIME = """
import asyncio, sys
from mle_ideator.protocols import SandboxRequest
from mle_ideator.sandboxes import choose_sandbox

async def main(workspace, inputs):
    request = SandboxRequest(workspace=workspace, inputs=inputs)
    async with choose_sandbox("docker")[1](request) as sandbox:
        print(sandbox._private.mark, flush=True)
        await asyncio.sleep(600)

asyncio.run(main(*sys.argv[1:]))
"""


async def test_what_a_killed_runtime_left_is_reaped_and_nothing_else(make_request, sandbox):
    request = make_request()
    command = [sys.executable, "-c", RUNTIME, request.workspace, request.inputs]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as runtime:  # noqa: ASYNC220
        mark = runtime.stdout.readline().strip()
        assert len(containers(f"name=mle-ideator-{mark}")) == 1
        others = set(containers()) - set(containers(f"name=mle-ideator-{mark}"))
        runtime.kill()
    deadline = time.monotonic() + 5
    while containers(f"name=mle-ideator-{mark}") and time.monotonic() < deadline:
        with Daemon() as daemon:
            daemon.remove_leftovers()
    assert containers(f"name=mle-ideator-{mark}") == []
    assert others <= set(containers())
    assert (await sandbox.execute(Execute("python", "print(1)"), 20)).text == "1\n"


async def test_a_container_lasts_for_all_kernels_of_its_sandbox(make_request):
    async with DockerSandbox(make_request(preload=())) as sandbox:
        name = f"name=mle-ideator-{sandbox._private.mark}"
        before = containers(name)
        await sandbox.execute(Execute("python", "open('/tmp/x', 'w').write('kept')"), 30)
        died = await sandbox.execute(Execute("python", "import os; os._exit(1)"), 30)
        assert died.status == "died"
        execution = await sandbox.execute(Execute("python", "print(open('/tmp/x').read())"), 30)
        assert execution.text == "kept\n"
        assert containers(name) == before
        assert len(before) == 1
    assert containers(name) == []


async def test_a_container_is_emptied_for_the_next_rollout(make_request, tmp_path):
    """A new one would import all packages again."""
    code = """
import os
for place in (os.path.expanduser('~'), '/tmp', '/dev/shm', '/run/kernel'):
    os.makedirs(place + '/left/closed/deep')
    open(place + '/left/closed/deep/file', 'w').write('left')
    os.symlink('/', place + '/left/closed/link')
    for closed in ('/left/closed/deep', '/left/closed', '/left'):
        os.chmod(place + closed, 0)
    open(place + '/file', 'w').write('left')
"""
    look = "find ~ /tmp /dev/shm /dev/mqueue /run/kernel -mindepth 1 -maxdepth 1"
    async with DockerSandbox(make_request(preload=())) as sandbox:
        name = f"name=mle-ideator-{sandbox._private.mark}"
        before = containers(name)
        await sandbox.snapshot(tmp_path / "kept")
        assert (await sandbox.execute(Execute("python", code), 30)).status == "ok"
        await sandbox.restore(tmp_path / "kept")
        found = (await sandbox.execute(Execute("bash", look), 30)).text.split()
        assert containers(name) == before
    assert len(found) == 2, found  # the kernel's folder, the keeper's socket
    assert all(path.startswith("/run/kernel/") for path in found)


async def test_a_kernel_ends_while_packages_are_imported(make_request):
    async with DockerSandbox(
        make_request(preload=("sklearn.ensemble",))
    ) as sandbox:  # takes a second
        name = f"name=mle-ideator-{sandbox._private.mark}"
        before = containers(name)
        died = await sandbox.execute(Execute("python", "import os; os._exit(3)"), 30)
        assert died.status == "died"
        code = "import sys; print('sklearn.ensemble' in sys.modules)"
        assert (await sandbox.execute(Execute("python", code), 30)).text == "True\n"
        assert containers(name) == before


async def test_a_container_whose_keeper_was_ended_is_replaced(make_request):
    async with DockerSandbox(make_request(preload=())) as sandbox:
        name = f"name=mle-ideator-{sandbox._private.mark}"
        before = containers(name)
        code = "import os, time; os.kill(os.getppid(), 9); time.sleep(9)"
        assert (await sandbox.execute(Execute("python", code), 30)).status == "died"
        assert (await sandbox.execute(Execute("python", "print(1)"), 30)).text == "1\n"
        deadline = time.monotonic() + 5
        while len(containers(name)) > 1 and time.monotonic() < deadline:
            time.sleep(0.1)  # noqa: ASYNC251 its removal is a thread's work
        assert len(containers(name)) == 1
        assert containers(name) != before


@pytest.mark.slow
async def test_twenty_sandboxes_leave_nothing(make_request):
    own = f"label=mle-ideator.owner={owners.this_process()}"
    before, files = containers(own), len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    for _ in range(20):
        async with DockerSandbox(make_request(preload=())) as sandbox:
            path, pid = sandbox._private.path, sandbox._interior.keeper._launched.pid
            assert (await sandbox.execute(Execute("python", "print(1)"), 30)).text == "1\n"
        assert not path.exists()
        assert not Path(f"/proc/{pid}").exists()
    assert containers(own) == before
    assert len(os.listdir("/proc/self/fd")) <= files + 2  # noqa: PTH208


async def test_owners_are_told_apart():
    mine = owners.this_process()
    boot, namespace, pid, started = mine.split()
    assert not owners.is_gone(mine)
    assert owners.is_gone(f"{boot} {namespace} {pid} {int(started) + 1}")
    assert owners.is_gone(f"another-boot {namespace} {pid} {started}")
    assert not owners.is_gone(f"{boot} pid:[1] {pid} {started}")
    assert not owners.is_gone("forged")


# --------------------------------------------------------------------------------- files


async def test_files_go_both_ways(make_request):
    request = make_request()
    workspace, inputs = Path(request.workspace), Path(request.inputs)
    (workspace / "old").mkdir()
    (workspace / "old" / "file").write_text("kept")
    (inputs / "train.csv").chmod(0o600)
    async with DockerSandbox(request) as sandbox:
        code = (
            "open('old/file', 'a').write('!'); open('new', 'w').write('x'); "
            "open('input/train.csv').read(); import os; os.chmod('new', 0); os.mkdir('d', 0)"
        )
        assert (await sandbox.execute(Execute("python", code), 30)).status == "ok"
        (workspace / "solution.py").write_text("written by the runtime")
        code = "open('solution.py', 'a').write('!')"
        assert (await sandbox.execute(Execute("python", code), 30)).status == "ok"
    assert (workspace / "solution.py").read_text() == "written by the runtime!"
    assert (workspace / "old" / "file").read_text() == "kept!"
    (workspace / "new").chmod(0o600)
    (workspace / "new").unlink()
    (workspace / "d").rmdir()


# ---------------------------------------------------------------------- what can be missing


@pytest.mark.parametrize(
    ("host", "words"),
    [
        ("unix:///nowhere/docker.sock", "systemctl start docker"),
        ("tcp://127.0.0.1:9", "must run on this machine"),
    ],
)
async def test_a_missing_daemon_is_said(monkeypatch, host, words):
    monkeypatch.setenv("DOCKER_HOST", host)
    reason = DockerSandbox.unavailable()
    assert words in reason
    assert "\n" not in reason


async def test_a_missing_right_is_said():
    if os.getuid() != 0:
        pytest.skip("needs root to become somebody without rights")
    code = (
        "import os, docker, requests, mle_ideator.sandboxes.containers.docker as d\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534); print(d.DockerSandbox.unavailable())"
    )
    said = output(sys.executable, "-c", code)
    assert "usermod -aG docker" in said
    assert said.count("\n") == 1


async def test_a_missing_image_is_said():
    reason = choose_sandbox("docker:no-such-image:1")[1].unavailable()
    assert "no image 'no-such-image:1'" in reason
    assert "mle-ideator image build" in reason


async def test_an_image_without_a_kernel_is_said():
    empty = output("tar", "-c", "-T", os.devnull)
    output("docker", "import", "-", "mle-ideator-test/empty", given=empty)
    reason = choose_sandbox("docker:mle-ideator-test/empty")[1].unavailable()
    output("docker", "rmi", "mle-ideator-test/empty")
    assert "python does not run in the image 'mle-ideator-test/empty'" in reason
    assert "\n" not in reason


async def test_a_missing_gpu_is_said(make_request):
    from mle_ideator.errors import SandboxError

    if Path("/dev/nvidiactl").exists():
        pytest.skip("this machine has GPUs")
    with pytest.raises(SandboxError, match="NVIDIA Container Toolkit"):
        async with DockerSandbox(make_request(gpus="all")):
            await asyncio.sleep(0)
