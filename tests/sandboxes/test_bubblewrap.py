"""The walls of bubblewrap: what agent code looks for, it does not find."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import tempfile
from collections.abc import AsyncIterator
from importlib.metadata import files
from pathlib import Path

import pytest
import pytest_asyncio

from mle_ideator.errors import SandboxError
from mle_ideator.protocols import SandboxLimits
from mle_ideator.sandboxes import bubblewrap
from mle_ideator.sandboxes.bubblewrap import BubblewrapSandbox
from mle_ideator.types import Execute

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(
        BubblewrapSandbox.unavailable() is not None, reason=str(BubblewrapSandbox.unavailable())
    ),
]

PLANTED = f"the-answer-is-{secrets.token_hex(8)}"


def packages() -> Path:
    """The folder that pandas lies in."""
    return Path(str(next(iter(files("pandas"))).locate())).parents[1]


@pytest.fixture(scope="module")
def planted(tmp_path_factory) -> AsyncIterator[list[Path]]:
    """Answers where a host may have them: home, cache, temporary files, beside the inputs."""
    name = f"planted-{secrets.token_hex(4)}"
    folders = [
        Path.home(),
        Path.home() / ".cache",
        tmp_path_factory.mktemp("host"),
        Path("/var/tmp"),
    ]
    places = [folder / name / "answers.csv" for folder in folders]
    for place in places:
        place.parent.mkdir(parents=True)
        place.write_text(PLANTED)
    yield places
    for place in places:
        place.unlink()
        place.parent.rmdir()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def run(make_request, planted):
    """Run a cell in one shared bubblewrap sandbox; `mlxtend`'s data is masked in it."""
    masked = (str(packages() / "mlxtend" / "data"), str(packages() / "threadpoolctl.py"))
    request = make_request(masked=masked)
    (Path(request.inputs).parent / "answers.csv").write_text(PLANTED)
    async with BubblewrapSandbox(request) as sandbox:

        async def execute(code, language="python"):
            return await sandbox.execute(Execute(language, code), 120)

        yield execute


async def test_no_file_outside_the_system_holds_the_answers(run, planted):
    code = f"""
import os
needle = {PLANTED[::-1]!r}[::-1]
seen, found = 0, []
for folder, folders, names in os.walk('/', onerror=lambda e: None):
    if folder == '/':
        folders[:] = [f for f in folders if f not in ('proc', 'sys', 'usr')]
    if 'site-packages' in folders or folder.endswith('site-packages'):
        folders[:] = [f for f in folders if f != 'site-packages']
    for name in names:
        path = os.path.join(folder, name)
        seen += 1
        if 'planted-' in path or 'answers' in path:
            found.append(path)
        try:
            if os.path.isfile(path) and os.path.getsize(path) < 10_000:
                if needle in open(path, errors='replace').read(): found.append(path)
        except OSError:
            pass
print(seen > 100, found)
"""
    assert all(place.read_text() == PLANTED for place in planted)
    assert (await run(code)).text == "True []\n"
    for place in planted:
        assert (await run(f"import os; print(os.path.exists({str(place)!r}))")).text == "False\n"


async def test_the_host_has_no_folders_inside(run):
    listing = (await run("ls -A /; ls -A /home ~ /tmp /run /workspace", "bash")).text
    assert "inputs" not in listing
    entries = set((await run("import os; print(*os.listdir('/'))")).text.split())
    system = {"usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "etc", "proc", "dev", "sys"}
    own = {"tmp", "home", "run", "workspace"}
    python = {Path(path).parts[1] for path in map(str, bubblewrap._python_parts())}
    assert entries <= system | own | python


async def test_only_own_processes_are_seen(run):
    code = """
import glob
for path in glob.glob('/proc/[0-9]*/cmdline'):
    print(path, open(path).read().replace(chr(0), ' '))
"""
    text = (await run(code)).text
    assert len(text.splitlines()) <= 4  # the first, one that waits, the keeper, the kernel
    assert "pytest" not in text
    runtime = await run(f"open('/proc/{os.getpid()}/environ').read()")
    assert "FileNotFoundError" in runtime.text


@pytest.mark.parametrize("file", ["environ", "maps", "mem", "root/etc/shadow", "cwd/answers.csv"])
async def test_the_first_process_gives_nothing_away(run, file):
    code = f"""
try:
    text = open('/proc/1/{file}', 'rb').read(100_000).decode(errors='replace')
except OSError as error:
    text = ''
print('pytest' in text, 'sk-planted' in text, 'root:' in text, {PLANTED[::-1]!r}[::-1] in text)
"""
    assert (await run(code)).text == "False False False False\n"


async def test_there_is_no_network(run):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = f"""
import socket
import tempfile
for address in (('127.0.0.1', {port}), ('1.1.1.1', 53), ('169.254.169.254', 80)):
    try:
        socket.create_connection(address, timeout=2); print('connected')
    except OSError as error:
        print(type(error).__name__)
print([name for _, name in socket.if_nameindex()])
"""
        text = (await run(code)).text
    assert "connected" not in text
    assert text.endswith("['lo']\n")


async def test_abstract_sockets_of_the_host_are_not_reached(run):
    with socket.socket(socket.AF_UNIX) as server:
        name = f"\0planted-{secrets.token_hex(4)}"
        server.bind(name)
        server.listen()
        execution = await run(f"import socket; socket.socket(socket.AF_UNIX).connect({name!r})")
    assert "ConnectionRefusedError" in execution.text


async def test_only_the_private_places_can_be_written(run):
    code = """
import os
writable, skipped = set(), ('/proc', '/workspace/input')
for folder, folders, _ in os.walk('/'):
    folders[:] = [f for f in folders if os.path.join(folder, f) not in skipped]
    if folder.count('/') > 5:
        folders.clear()
    try:
        name = os.path.join(folder, 'probe'); open(name, 'x').close(); os.unlink(name)
        writable.add('/' + '/'.join(folder.split('/')[1:3]))
    except OSError:
        pass
print(*sorted(writable))
"""
    places = (await run(code)).text.split()
    allowed = ("/workspace", "/tmp", "/home/agent", "/run/kernel", "/dev/shm")
    assert "/workspace" in places
    assert [place for place in places if not place.startswith(allowed)] == []


@pytest.mark.parametrize(
    "code",
    [
        "import os; os.open('/proc/sys/kernel/core_pattern', os.O_WRONLY)",
        "import os; os.open('/proc/sysrq-trigger', os.O_WRONLY)",
        "open('/usr/planted', 'w')",
        "open('/etc/passwd', 'a')",
        "open('/workspace/input/train.csv', 'r+')",
        "import os; os.unlink('/workspace/input/train.csv')",
        "import os; os.rename('/workspace/input', '/workspace/moved')",
        "import os; os.setuid(0)",
        "import os; os.mknod('/tmp/sda', 0o60600, os.makedev(8, 0)); open('/tmp/sda')",
        "import os; os.chroot('/')",
        "import subprocess; subprocess.run(['mount', '-o', 'remount,rw', '/usr'], check=True)",
        "import subprocess; subprocess.run(['umount', '/workspace/input'], check=True)",
        "import subprocess; subprocess.run(['unshare', '-Ur', 'true'], check=True)",
        "import subprocess; subprocess.run(['nsenter', '-t', '1', '-m', 'true'], check=True)",
    ],
)
async def test_rights_are_not_there(run, code):
    execution = await run(code)
    assert execution.status == "error"


async def test_nothing_of_the_machine_in_proc_can_be_written(run):
    code = """
import os
writable = []
for folder, folders, names in os.walk('/proc'):
    if folder == '/proc':
        folders[:] = [f for f in folders if not f.isdigit() and 'self' not in f]
    for name in names:
        try:
            os.close(os.open(os.path.join(folder, name), os.O_WRONLY | os.O_NONBLOCK))
            writable.append(os.path.join(folder, name))
        except OSError:
            pass
print([path for path in writable if os.path.getsize(path) or not os.stat(path).st_rdev])
"""
    assert (await run(code)).text == "[]\n"


async def test_no_capability_is_left(run):
    execution = await run(
        "grep -E '^(Cap(Prm|Eff|Amb|Bnd)|NoNewPrivs)' /proc/self/status; id -u", "bash"
    )
    values = execution.text.split()[1::2]
    assert values == ["0000000000000000"] * 4 + ["1"]
    assert execution.text.endswith("\n1000\n")


async def test_killing_everything_kills_nothing_of_the_host(run):
    other = await asyncio.create_subprocess_exec("sleep", "60")
    await run("import os, signal; os.kill(-1, signal.SIGKILL)")
    assert other.returncode is None
    other.kill()
    await other.wait()
    assert (await run("print(1)")).text == "1\n"


async def test_masked_sources_are_covered(run):
    assert list((packages() / "mlxtend" / "data").rglob("*"))
    code = f"""
import os
print(list(os.walk({str(packages() / "mlxtend" / "data")!r})) )
print(os.path.getsize({str(packages() / "threadpoolctl.py")!r}))
import numpy
print('numpy works')
"""
    text = (await run(code)).text
    assert "[], [])]" in text
    assert text.endswith("\n0\nnumpy works\n")


async def test_the_runtime_is_not_there(run):
    execution = await run("import mle_ideator; print(mle_ideator.__path__)")
    assert execution.status == "error"


async def test_a_link_out_of_the_workspace_leads_nowhere(run, planted):
    code = f"import os; os.symlink({str(planted[0])!r}, 'link'); print(os.path.exists('link'))"
    assert (await run(code)).text == "False\n"


async def test_the_name_of_the_machine_is_hidden(run):
    assert (await run("hostname", "bash")).text != socket.gethostname() + "\n"


async def test_folders_with_two_names_are_covered_under_both(tmp_path, monkeypatch):
    (tmp_path / "real" / "lib" / "data").mkdir(parents=True)
    (tmp_path / "alias").symlink_to(tmp_path / "real")
    folders = [tmp_path / "alias", tmp_path / "real"]
    monkeypatch.setattr(bubblewrap, "python_folders", lambda: folders)
    words = bubblewrap._covers([str(tmp_path / "real" / "lib" / "data")])
    assert words.count("--tmpfs") == 2
    assert str(tmp_path / "alias" / "lib" / "data") in words


@pytest.fixture
def cold(monkeypatch):
    """No process can be forked with the modules in it."""

    def refuses(*_):
        raise SandboxError("there is no warm process")

    monkeypatch.setattr("mle_ideator.sandboxes.warm.fork_server", refuses)


@pytest.mark.usefixtures("cold")
async def test_a_kernel_that_can_not_start_says_why(make_request):
    masked = (str(packages() / "ipykernel"),)
    with pytest.raises(SandboxError, match=r"did not start: .*exit code 1(.|\n)*ipykernel"):
        async with BubblewrapSandbox(make_request(masked=masked)):
            pass


@pytest.mark.usefixtures("cold")
async def test_it_starts_without_a_warm_process_and_says_so(make_request):
    async with BubblewrapSandbox(make_request()) as sandbox:
        assert sandbox.info.cold_start == "there is no warm process"
        look = Execute("bash", "echo 'print(6 * 7)' > s.py; python s.py; cat /proc/[12]/status")
        execution = await sandbox.execute(look, 30)
    assert execution.text.startswith("42\n")
    assert "Seccomp:\t2" in execution.text
    assert "Seccomp:\t0" not in execution.text


@pytest.mark.usefixtures("cold")
async def test_no_process_inside_holds_what_the_keeper_is_told_by(make_request):
    code = """
import glob, os
own = {os.readlink(f'/proc/self/fd/{number}') for number in (1, 2)}
held = {}
for path in glob.glob('/proc/[0-9]*/fd/*'):
    if str(os.getpid()) not in path.split('/'):
        try:
            held[path] = os.readlink(path)
        except OSError:
            pass
print(held.get('/proc/1/fd/0'))
print([path for path in held if 'pipe' in held[path] and held[path] not in own])
"""
    async with BubblewrapSandbox(make_request()) as sandbox:
        execution = await sandbox.execute(Execute("python", code), 30)
    assert execution.text == "/dev/null\n[]\n"


async def test_shared_memory_is_limited(make_request):
    request = make_request(limits=SandboxLimits(memory_gib=1))
    code = "s = __import__('os').statvfs('/dev/shm'); print(s.f_blocks * s.f_frsize / 2**30)"
    async with BubblewrapSandbox(request) as sandbox:
        assert (await sandbox.execute(Execute("python", code), 30)).text == "0.5\n"


@pytest.mark.parametrize("warm", [True, False])
async def test_the_program_is_the_one_that_was_looked_for(
    make_request, monkeypatch, tmp_path, request, warm
):
    if not warm:
        request.getfixturevalue("cold")
    ours = tmp_path / "bwrap"
    ours.write_text(f'#!/bin/sh\necho used >> {tmp_path}/used\nexec {bubblewrap._program()} "$@"\n')
    ours.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    async with BubblewrapSandbox(make_request()) as sandbox:
        assert bool(sandbox.info.cold_start) is not warm
    assert (tmp_path / "used").read_text() == "used\n"


async def test_a_missing_program_is_said_with_the_command(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    reason = bubblewrap._unavailable.__wrapped__()
    assert "apt-get install bubblewrap" in reason


async def test_a_python_below_tmp_starts_a_second_kernel(make_request, monkeypatch):
    """The sandbox's `/tmp` outlives a kernel, and with it what was mounted in it."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        python = Path(folder)
        (python / "lib").mkdir()
        (python / "lib" / "secret").write_text("x")
        (python / "lib64").symlink_to("lib")
        folders = [*bubblewrap.python_folders(), python]
        monkeypatch.setattr(bubblewrap, "python_folders", lambda: folders)
        request = make_request(masked=(str(python / "lib" / "secret"),))
        async with BubblewrapSandbox(request) as sandbox:
            for _ in range(2):
                look = Execute(
                    "bash", f"cat {python}/lib/secret {python}/lib64/secret 2>&-; echo up"
                )
                assert (await sandbox.execute(look, 20)).text == "up\n"
                died = await sandbox.execute(Execute("python", "import os; os._exit(1)"), 20)
                assert died.status == "died"
