"""The keeper's socket is open to agent code: nothing that is said there harms what others do."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
import socket
import sys
import time

import psutil
import pytest

pytestmark = pytest.mark.asyncio(loop_scope="module")

CONNECT = """
import json, os, socket, array, time
def connect():
    keeper = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    keeper.settimeout(5)
    while True:
        try:
            keeper.connect(os.environ['MLE_IDEATOR_KEEPER'])
            return keeper
        except BlockingIOError:
            time.sleep(0.01)
def said(message, descriptors=()):
    keeper = connect()
    try:
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', descriptors))]
        keeper.sendmsg([message], rights if descriptors else [])
        return keeper.recv(1000)
    except OSError as error:
        return type(error).__name__.encode()
"""
SCRIPT = "import sys; print('warm' if 'lightgbm' in sys.modules else 'cold')"

RUBBISH = [
    "b''",
    "b'x'",
    "b'\\0' * 1000",
    "b'\\xff' * 60000",
    "b'{'",
    "b'[]'",
    "b'null'",
    "b'{}'",
    "b'1' * 100000",
    "b'[' * 100000",
    "b'script'",
    "b'script\\0' * 100",
    "b'script\\x00x\\x00x\\x00x\\x00x\\x00\\x00\\x00/\\x001\\x00x.py'",
    "b'script\\x0018\\x000\\x000\\x000:0\\x00\\x00\\x00/\\x00' + b'9' * 5000 + b'\\x00x.py'",
    "b'signal\\x009'",
    "b'signal\\x00-1'",
    "b'signal\\x00' + b'9' * 40",
    *(
        f"json.dumps({request}).encode()"
        for request in (
            *(
                "{'do': 'x'}",
                "{'do': ['start']}",
                "{'do': 'start'}",
                "{'do': 'wait', 'job': 10**9}",
            ),
            *("{'do': 'kill', 'job': -1, 'signal': 9}", "{'do': 'show', 'job': []}"),
            *("{'do': 'wait', 'job': float('nan')}", "{'do': 'show', 'job': {'a': 1}}"),
            "{'do': 'start', 'command': [], 'cwd': '/', 'environment': {}}",
            "{'do': 'start', 'command': ['a\\0b'], 'cwd': '/', 'environment': {}}",
            "{'do': 'start', 'command': ['\\ud800'], 'cwd': '/', 'environment': {}}",
            "{'do': 'start', 'command': ['true'], 'cwd': 7, 'environment': {'a=b': 1}}",
            "{'do': 'start', 'command': ['true'], 'cwd': '/', 'environment': []}",
        )
    ),
]


async def is_well(box) -> None:
    box_says = await box.bash(f'echo "{SCRIPT}" > w.py; python w.py; rm w.py; job list | head -1')
    assert box_says.text.splitlines()[0] == "warm", box_says


def keeper_of(box) -> int:
    return psutil.Process(box.sandbox._interior.keeper._kernel).ppid()


async def test_rubbish_is_hung_up_on(box):
    keeper = keeper_of(box)
    lines = "\n".join(f"print(said({message}))" for message in RUBBISH)
    execution = await box.python(CONNECT + lines)
    assert execution.status == "ok", execution
    assert len(execution.text.splitlines()) == len(RUBBISH)
    assert "TimeoutError" not in execution.text
    await is_well(box)
    assert keeper_of(box) == keeper


def open_files(pid: int) -> int:
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208
    except PermissionError:
        pytest.skip("only root can see what the keeper has open")


async def test_descriptors_do_not_stay_with_the_keeper(box):
    await is_well(box)
    before = open_files(keeper_of(box))
    code = """
for count in (0, 1, 2, 4, 50, 250):
    for message in (b'script', b'{"do": "list"}', b'x'):
        said(message, [0] * count)
for _ in range(50):
    connect().close()
"""
    assert (await box.python(CONNECT + code)).status == "ok"
    await is_well(box)
    assert open_files(keeper_of(box)) <= before


async def test_many_that_say_nothing_do_not_keep_others_out(box):
    code = "silent = [connect() for _ in range(900)]; print(len(silent))"
    execution = await box.python(CONNECT + code)
    assert execution.text == "900\n"
    started = time.monotonic()
    await is_well(box)
    assert time.monotonic() - started < 10
    await box.python("[s.close() for s in silent]; del silent")


async def test_half_a_message_harms_nobody(box):
    code = """
half = connect(); half.send(b'scr'); rest = connect(); print(said(b'{"do": "list"}')[:1])
"""
    assert (await box.python(CONNECT + code)).text == "b'['\n"
    await is_well(box)
    await box.python("half.close(); rest.close()")


async def test_a_run_ends_with_its_client(box):
    code = """
exec 2> /dev/null
echo 'import time, os; print(os.getpid(), flush=True); time.sleep(60)' > w.py
python w.py > pid & while [ ! -s pid ]; do sleep 0.05; done
ls /proc/$(cat pid) > /dev/null && echo runs
kill -9 $!; sleep 0.5; ls /proc/$(cat pid) || echo gone; rm w.py pid
"""
    assert (await box.bash(code)).text.split() == ["runs", "gone"]


async def test_a_stopped_keeper_makes_runs_cold(box):
    keeper = await inside(box)
    code = f"""
echo "{SCRIPT}" > w.py
kill -STOP {keeper}; python w.py; job list; kill -CONT {keeper}; rm w.py
"""
    execution = await box.bash(code, 40)
    assert execution.text.splitlines()[0] == "cold"
    assert "does not answer" in execution.text
    await is_well(box)


async def test_the_kernel_ends_with_its_keeper_and_the_next_runs_are_warm(box):
    keeper = await inside(box)
    assert (await box.bash(f"kill -9 {keeper}; sleep 5", 20)).status == "died"
    (box.workspace / "w.py").write_text(SCRIPT)
    for _ in range(30):  # a new keeper may have to import everything first
        if (await box.bash("python w.py")).text == "warm\n":
            break
        await asyncio.sleep(1)
    await is_well(box)


async def test_a_run_ends_as_killed_when_its_keeper_is(tmp_path):
    """A real client. In a sandbox nobody may be left to see how it ended."""
    from mle_ideator.sandboxes.programs import client

    address = str(tmp_path / "keeper")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(address)
        listening.listen()
        run = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", client.__file__, "x.py"),
            env={client.ADDRESS: address},
        )
        listening.settimeout(20)
        keeper, _ = await asyncio.to_thread(listening.accept)
        with keeper:
            await asyncio.to_thread(keeper.recv, client.LONGEST)
            keeper.send(client.RUNNING)
        assert await asyncio.wait_for(run.wait(), 20) == -signal.SIGKILL


async def inside(box) -> int:
    """The keeper's process as agent code sees it: the parent of the kernel."""
    return int((await box.python("import os; print(os.getppid())")).text)


async def test_a_refused_fork_ends_neither_the_keeper_nor_the_run(tmp_path, monkeypatch):
    """As at the limit of processes."""
    from mle_ideator.sandboxes.programs import client
    from mle_ideator.sandboxes.programs.requests import Requests

    monkeypatch.setenv("HOME", str(tmp_path))
    requests = Requests(str(tmp_path), lambda *_: None)
    monkeypatch.setattr(os, "fork", refused)
    (tmp_path / "x.py").write_text("")
    monkeypatch.chdir(tmp_path)
    script = client._request(["x.py"])
    job = {"do": "start", "command": ["true"], "cwd": "/", "environment": {}}
    for said, descriptors, answers in (
        (script, [0, 1, 2], [client.RUNNING, b"cold [Errno 11] "]),
        (json.dumps(job).encode(), [], [b'{"refused": "no process can be started']),
    ):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asking:
            asking.connect(requests.path)
            socket.send_fds(asking, [said], descriptors)
            for _ in range(2):
                for descriptor in requests.descriptors():
                    assert requests.answer(descriptor) is None
            for answer in answers:
                assert asking.recv(1000).startswith(answer)
    requests.forget()


def refused() -> int:
    raise OSError(errno.EAGAIN, "Resource temporarily unavailable")
