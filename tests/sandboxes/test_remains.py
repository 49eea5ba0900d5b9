"""What agent code leaves beside its workspace: it counts, and nothing of it outlives a restore."""

from __future__ import annotations

import pytest
import pytest_asyncio

from mle_ideator.protocols import SandboxLimits
from mle_ideator.registry import find
from mle_ideator.sandboxes import bubblewrap
from mle_ideator.types import Execute

pytestmark = pytest.mark.asyncio(loop_scope="module")

FOLDERS = "[os.path.expanduser('~'), tempfile.gettempdir(), os.path.dirname(keeper)]"
LEAVE = f"""
import ctypes, os, subprocess, tempfile
keeper = os.environ['MLE_IDEATOR_KEEPER']
for folder in {FOLDERS}:
    os.makedirs(folder + '/left/closed')
    open(folder + '/left/closed/file', 'w').write('left')
    os.chmod(folder + '/left/closed', 0)
    os.symlink('/', folder + '/link')
libc = ctypes.CDLL(None, use_errno=True)
if shared:
    for place in ('/dev/shm', '/dev', '/dev/mqueue'):
        try:
            open(place + '/left', 'w').write('left')
        except OSError:
            pass
    libc.shmget(0x6d6c65, 4096, 0o1600), libc.semget(0x6d6c65, 1, 0o1600)
    libc.msgget(0x6d6c65, 0o1600), libc.mq_open(b'/left', os.O_CREAT | os.O_RDWR, 0o600, None)
    assert libc.shmget(0x6d6c65, 4096, 0) >= 0 and libc.mq_open(b'/left', os.O_RDONLY) >= 0
subprocess.run(['job', 'start', 'sleep', '600'], check=True)
"""
LOOK = f"""
import ctypes, os, tempfile
keeper = os.environ['MLE_IDEATOR_KEEPER']
found = [f + '/' + name for f in {FOLDERS} for name in os.listdir(f) if name in ('left', 'link')]
if shared:
    libc = ctypes.CDLL(None)
    found += [p for p in ('/dev/shm/left', '/dev/left', '/dev/mqueue/left') if os.path.exists(p)]
    found += [get for get in ('shmget', 'semget') if getattr(libc, get)(0x6d6c65, 0, 0) >= 0]
    found += [] if libc.msgget(0x6d6c65, 0) < 0 else ['msgget']
    found += [] if libc.mq_open(b'/left', os.O_RDONLY) < 0 else ['mq_open']
print(found)
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["bubblewrap", "docker"])
async def walled(request, make_request):
    """For the whole module."""
    factory = find("sandboxes", request.param)[0]
    if reason := factory.unavailable():
        pytest.skip(reason)
    with pytest.MonkeyPatch.context() as patch:  # as with a bubblewrap that can not forbid it
        patch.setattr(bubblewrap, "_no_nesting", tuple)
        async with factory(make_request()) as sandbox:
            yield sandbox


async def test_nothing_of_agent_code_outlives_a_restore(factory, make_request, tmp_path):
    shared = f"shared = {factory.kind != 'local'}\n"  # there, it is the machine's
    async with factory(make_request()) as sandbox:
        await sandbox.snapshot(tmp_path / "kept")
        for _ in range(2):
            left = await sandbox.execute(Execute("python", shared + LEAVE), 30)
            assert left.status == "ok", left.text
            await sandbox.restore(tmp_path / "kept")
            assert (await sandbox.execute(Execute("python", shared + LOOK), 30)).text == "[]\n"
            jobs = await sandbox.execute(Execute("bash", "job list"), 30)
            assert jobs.text == "no job was started\n"


async def test_files_beside_the_sockets_count(factory, make_request):
    code = """
import os, time
with open(os.path.dirname(os.environ['MLE_IDEATOR_KEEPER']) + '/hoard', 'wb') as file:
    for _ in range(200):
        file.write(bytes(1 << 20))
        time.sleep(0.01)
time.sleep(60)
"""
    request = make_request(limits=SandboxLimits(disk_gib=0.1))
    async with factory(request) as sandbox:
        execution = await sandbox.execute(Execute("python", code), 60)
    assert execution.status == "limit"
    assert "disk" in execution.limits_hit


@pytest.mark.parametrize(
    "code",
    [
        "open('f', 'w'); os.chmod('f', 0o4755)",
        "os.fchmod(os.open('f', os.O_CREAT | os.O_RDWR), 0o4755)",
        "open('f', 'w'); os.chmod('f', 0o4755, dir_fd=os.open('.', os.O_RDONLY))",
        "os.open('g', os.O_CREAT | os.O_WRONLY, 0o4755)",
        "os.open('.', os.O_TMPFILE | os.O_WRONLY, 0o4755)",
        "os.mknod('h', 0o104755)",
        "called('open', b'i', os.O_CREAT | os.O_WRONLY, 0o4755)",
        "called('creat', b'j', 0o4755)",
        "called('syscall', 452, -100, b'f', 0o4755, 0)",
        "called('unshare', 0x10000000)",
        "called('syscall', {'x86_64': 56}.get(platform.machine(), 220), 0x10000011, 0, 0, 0, 0)",
    ],
)
async def test_no_rights_are_made(walled, code):
    given = """
import ctypes, os, platform
libc = ctypes.CDLL(None, use_errno=True)
def called(name, *values):
    if getattr(libc, name)(*values) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
"""
    execution = await walled.execute(Execute("python", given + code), 30)
    assert "PermissionError" in execution.text


async def test_what_must_work_still_does(walled):
    code = """
import ctypes, mmap, multiprocessing, os, pty, shutil, subprocess, tempfile, threading
import multiprocessing.shared_memory, concurrent.futures
os.makedirs('d/e', exist_ok=True); os.chmod('d', 0o2755); shutil.copytree('d', 'copied')
with tempfile.TemporaryFile() as file:
    file.write(b'x')
open('/dev/null', 'w').write('x'); os.close(os.open('d', os.O_RDONLY))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.syscall({'x86_64': 257}.get(os.uname().machine, 56), -100, b'd', 0, 0o4755) > 0
master, slave = pty.openpty(); os.write(slave, b'x'); assert os.read(master, 1) == b'x'
memory = multiprocessing.shared_memory.SharedMemory(create=True, size=4096)
memory.close(); memory.unlink()
thread = threading.Thread(target=lambda: None); thread.start(); thread.join()
for how in ('fork', 'spawn', 'forkserver'):
    context = multiprocessing.get_context(how)
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        assert pool.submit(abs, -1).result() == 1
print(subprocess.check_output(['sh', '-c', 'echo x | cat'], text=True))
"""
    execution = await walled.execute(Execute("python", code), 60)
    assert execution.text == "x\n\n"
