"""What a sandbox leaves behind: nothing, however it or the runtime ends."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from mle_ideator.errors import SandboxError
from mle_ideator.protocols import SandboxLimits, SandboxRequest
from mle_ideator.sandboxes import choose_sandbox
from mle_ideator.sandboxes.environment import MARK
from mle_ideator.sandboxes.private import PREFIX, PrivateFolder, remove_leftovers
from mle_ideator.sandboxes.processes import marked
from mle_ideator.types import Execute
from tests.processes import children

SPREAD = """
import os, subprocess
subprocess.Popen(['sleep', '621'])
subprocess.Popen(['sleep', '621'], start_new_session=True)
os.system('setsid nohup sleep 621 > /dev/null 2>&1 &')
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execvp('sleep', ['sleep', '621'])
    os._exit(0)
print(os.environ['MLE_IDEATOR_SANDBOX'], flush=True)
"""


@pytest.fixture(autouse=True)
def own_temporary_folder(monkeypatch, tmp_path_factory):
    """Short, since sockets lie in it; its own, since other sandboxes may run on this machine."""
    tmp_path_factory.getbasetemp()  # pytest's own folder stays where it is
    with tempfile.TemporaryDirectory(prefix="t-") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        monkeypatch.setenv("TMPDIR", folder)
        yield


def python(code: str) -> Execute:
    return Execute("python", code)


def folders() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob(f"{PREFIX}*"))


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


async def once(factory, request, code="1") -> str:
    async with factory(request) as sandbox:
        return (await sandbox.execute(python(code), 30)).text


@pytest.mark.slow
async def test_nothing_is_left_after_the_end(factory, make_request):
    await once(factory, make_request())  # what is opened once for all is opened
    before, files, open_files = children(), folders(), descriptors()
    mark = (await once(factory, make_request(), SPREAD)).split()[0]
    assert marked(mark) == []
    assert children() == before
    assert not folders() - files
    for _ in range(3):
        await once(factory, make_request(), "import os; os.kill(os.getpid(), 9)")
    assert descriptors() <= open_files


async def test_nothing_is_left_when_the_session_is_cancelled(factory, make_request):
    files = folders()
    started = asyncio.Event()

    async def session() -> None:
        async with factory(make_request()) as sandbox:
            started.set()
            await sandbox.execute(python(SPREAD + "import time; time.sleep(600)"), 600)

    task = asyncio.create_task(session())
    await started.wait()
    await asyncio.sleep(0.5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 10)
    assert not folders() - files


@pytest.mark.parametrize("after_s", [0.2, 0.8])
async def test_nothing_is_left_when_the_session_is_cancelled_again_and_again(
    factory, make_request, after_s
):
    before, files = children(), folders()
    task = asyncio.create_task(
        once(
            factory,
            make_request(),
            SPREAD + "input_ = open('/dev/zero')\nwhile input_.buffer.read(1): pass",
        )
    )
    await asyncio.sleep(after_s)
    start = time.monotonic()
    while not task.done():
        task.cancel()
        await asyncio.sleep(0.01)
        assert time.monotonic() - start < 6
    assert task.cancelled()
    assert children() == before
    assert not folders() - files


@pytest.mark.parametrize("interrupts", [1, 2])
async def test_nothing_is_left_by_a_runtime_that_is_interrupted(factory, make_request, interrupts):
    """`asyncio.run` cancels all tasks, also those that clean up, at a second Ctrl-C."""
    request = make_request()
    files = folders()
    runtime = subprocess.Popen(  # noqa: ASYNC220
        [sys.executable, "-c", RUNTIME, factory.kind, request.workspace, request.inputs],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    runtime.stdin.write(SPREAD)
    runtime.stdin.close()
    mark = runtime.stdout.readline().strip()
    for _ in range(interrupts):
        runtime.send_signal(signal.SIGINT)
        await asyncio.sleep(0.02)
    runtime.wait(10)
    runtime.stdout.close()
    assert marked(mark) == []
    assert not folders() - files


DEEP = """
import os, tempfile
for base in (tempfile.gettempdir(), os.path.expanduser('~'), get_ipython().kernel.folder):
    os.chdir(base)
    for _ in range(1500):
        os.mkdir('d'); os.chdir('d')
    os.chmod('.', 0)
print('made')
"""


async def test_no_depth_of_folders_stops_the_end_or_the_next_run(factory, make_request):
    files = folders()
    assert await once(factory, make_request(), DEEP) == "made\n"
    assert not folders() - files
    assert await once(factory, make_request()) == "1\n"


async def test_a_failed_end_does_not_hide_the_outcome(factory, make_request, monkeypatch, caplog):
    monkeypatch.setattr("mle_ideator.sandboxes.private.remove_tree", lambda _: 1 / 0)
    with pytest.raises(LookupError, match="the outcome"):
        async with factory(make_request()):
            raise LookupError("the outcome")
    assert "not cleared away" in caplog.text


@pytest.mark.parametrize("after_s", [0.01, 0.03, 0.1, 0.3])
async def test_nothing_is_left_when_the_start_is_cancelled(factory, make_request, after_s):
    await once(factory, make_request())  # what is started once for all is there
    before, files = children(), folders()
    task = asyncio.create_task(once(factory, make_request(), "import time; time.sleep(9)"))
    await asyncio.sleep(after_s)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 10)
    assert children() == before
    assert not folders() - files


RUNTIME = """
import asyncio, sys
from mle_ideator.protocols import SandboxLimits, SandboxRequest
from mle_ideator.sandboxes import choose_sandbox
from mle_ideator.types import Execute

async def main(kind, workspace, inputs):
    factory = choose_sandbox(kind)[1]
    async with factory(SandboxRequest(workspace=workspace, inputs=inputs)) as sandbox:
        execution = await sandbox.execute(Execute("python", sys.stdin.read()), 60)
        print(execution.text, flush=True)
        await asyncio.sleep(600)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
async def test_nothing_survives_a_killed_runtime(factory, make_request, how):
    request = make_request()
    runtime = subprocess.Popen(  # noqa: ASYNC220
        [sys.executable, "-c", RUNTIME, factory.kind, request.workspace, request.inputs],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    runtime.stdin.write(SPREAD)
    runtime.stdin.close()
    mark = runtime.stdout.readline().strip()
    assert len(marked(mark)) >= 5
    runtime.send_signal(how)
    runtime.wait()
    runtime.stdout.close()
    await nothing_marked(mark)


async def nothing_marked(mark: str) -> None:
    deadline = time.monotonic() + 5
    while marked(mark) and time.monotonic() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    assert marked(mark) == []


LEFTOVER = """
import os, subprocess
from mle_ideator.sandboxes.private import PrivateFolder
folder = PrivateFolder()
(folder.path / 'tmp' / 'x').mkdir(mode=0)
(folder.path / 'tmp' / 'out').symlink_to('/tmp')
null = subprocess.DEVNULL
subprocess.Popen(['sleep', '622'], stdout=null, env={'MLE_IDEATOR_SANDBOX': folder.mark})
print(folder.path, folder.mark, flush=True)
os.kill(os.getpid(), 9)
"""


def test_what_killed_runtimes_left_is_cleared_away_and_nothing_else():
    mode = Path(tempfile.gettempdir()).stat().st_mode
    command = [sys.executable, "-c", LEFTOVER]
    killed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    (path, mark), alive = killed.stdout.split(), PrivateFolder()
    assert Path(path).is_dir()
    assert len(marked(mark)) == 1
    remove_leftovers()
    assert not Path(path).exists()
    assert marked(mark) == []
    assert alive.path.is_dir()
    alive.remove()
    assert not alive.path.exists()
    assert Path(tempfile.gettempdir()).stat().st_mode == mode


def test_a_forged_mark_kills_nobody():
    for forged in ("", "PATH", "0" * 31):
        folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        (folder / "lock").write_text(forged)
        remove_leftovers()
        assert not folder.exists()


async def test_a_sandbox_that_is_not_open_says_so(factory, make_request):
    sandbox = factory(make_request())
    with pytest.raises(SandboxError, match="async with"):
        await sandbox.execute(python("1"), 10)


async def test_a_private_folder_that_was_removed_is_no_disaster(make_request):
    mode = Path(tempfile.gettempdir()).stat().st_mode
    async with choose_sandbox("local")[1](make_request()) as sandbox:
        code = "import os, shutil; shutil.rmtree(os.path.dirname(os.environ['HOME'])); print(1)"
        assert (await sandbox.execute(python(code), 30)).text == "1\n"
        assert (await sandbox.execute(python("print(2)"), 30)).text == "2\n"
    assert Path(tempfile.gettempdir()).stat().st_mode == mode


async def test_two_at_once_do_not_meet(factory, make_request):
    first_request, second_request = make_request(), make_request()
    async with factory(first_request) as first, factory(second_request) as second:
        start = time.monotonic()
        code = "import time; x = {}; open('mine', 'w').write(str(x)); time.sleep(0.7); print(x)"
        results = await asyncio.gather(
            first.execute(python(code.format(1)), 30), second.execute(python(code.format(2)), 30)
        )
        assert time.monotonic() - start < 1.3
        assert [result.text for result in results] == ["1\n", "2\n"]
        assert (Path(first_request.workspace) / "mine").read_text() == "1"
        await first.execute(python("import os; os.kill(os.getpid(), 9)"), 30)
        assert (await second.execute(python("print(x)"), 30)).text == "2\n"


@pytest.mark.slow
async def test_six_start_at_once(factory, make_request):
    texts = await asyncio.gather(*(once(factory, make_request(), f"{n}") for n in range(6)))
    assert texts == [f"{n}\n" for n in range(6)]


async def test_files_are_limited(factory, make_request):
    async with factory(make_request(limits=SandboxLimits(file_gib=1 / 1024))) as sandbox:
        execution = await sandbox.execute(python("open('big', 'wb').write(b'x' * 2**21)"), 30)
        assert execution.status == "error"
        assert "File too large" in execution.text


async def test_output_limit_is_the_requests(factory, make_request):
    async with factory(make_request(limits=SandboxLimits(output_chars=100))) as sandbox:
        execution = await sandbox.execute(python("print('a' * 1000)"), 30)
        assert execution.dropped_chars >= 900
        assert len(execution.text) < 200


async def test_long_temporary_paths_do_not_matter(factory, make_request, tmp_path, monkeypatch):
    long = tmp_path / ("long" * 30)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    assert await once(factory, make_request()) == "1\n"


async def test_a_missing_folder_of_inputs_is_said(factory, make_request, tmp_path):
    request = make_request(inputs=str(tmp_path / "nothing"))
    with pytest.raises(SandboxError, match="inputs does not exist"):
        await once(factory, request)


async def test_a_workspace_that_exists_is_gone_on_with(factory, make_request):
    request = make_request()
    for n in range(2):
        text = await once(factory, request, "open('a', 'a').write('x'); print(open('a').read())")
        assert text == "x" * (n + 1) + "\n"


SUPERVISOR = "int(open(f'/proc/{os.getppid()}/stat').read().rpartition(')')[2].split()[1])"


@pytest.mark.parametrize(
    ("who", "lost"), [("os.getppid()", "its keeper"), (SUPERVISOR, "it lost its supervisor")]
)
async def test_local_notices_that_one_above_was_killed(make_request, who, lost):
    factory = choose_sandbox("local")[1]
    async with factory(make_request()) as sandbox:
        code = SPREAD + f"import signal; os.kill({who}, 9)\nimport time; time.sleep(600)"
        execution = await sandbox.execute(python(code), 60)
        assert execution.status == "died"
        assert lost in execution.note
        assert marked(execution.text.split()[0]) == []
        assert (await sandbox.execute(python("print(1)"), 30)).text == "1\n"


@pytest.mark.parametrize("report", ["exit zzz\\n", "exit 99999\\n", "x" * 200_000])
async def test_local_believes_no_forged_report(make_request, report):
    factory = choose_sandbox("local")[1]
    async with factory(make_request()) as sandbox:
        write = f"open(f'/proc/{{p}}/fd/1', 'w').write('{report}')"
        code = f"import os; p = {SUPERVISOR}\n{write}\nprint(1)"
        execution = await sandbox.execute(python(code), 20)
        if len(report) > 100:
            assert execution.status == "died"
            assert "supervisor" in execution.note
        else:
            assert execution.text == "1\n"
            died = await sandbox.execute(python("os._exit(5)"), 20)
            assert "exit code 5" in died.note
        assert (await sandbox.execute(python("print(2)"), 20)).text == "2\n"


@pytest.mark.slow
@pytest.mark.parametrize("who", ["os.getppid()", SUPERVISOR])
async def test_local_ends_in_time_with_a_stopped_one_above(make_request, who):
    factory = choose_sandbox("local")[1]
    async with factory(make_request()) as sandbox:
        code = SPREAD + (
            "import signal, time\nfor s in (signal.SIGINT, signal.SIGTERM): "
            "signal.signal(s, signal.SIG_IGN)\n"
            f"os.kill({who}, signal.SIGSTOP)\ntime.sleep(600)"
        )
        start = time.monotonic()
        execution = await sandbox.execute(python(code), 1)
        assert time.monotonic() - start < 6
        assert execution.status == "timeout"
        assert marked(execution.text.split()[0]) == []


def test_choosing():
    name, factory = choose_sandbox("auto")
    assert factory.unavailable() is None
    assert factory.kind == name
    assert choose_sandbox("local")[1].kind == "local"
    assert MARK in SPREAD


def test_requests_are_plain_values(make_request):
    assert isinstance(make_request(), SandboxRequest)
